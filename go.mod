module github.com/roomscaler/roomscaler

go 1.26.0
