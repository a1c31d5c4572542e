module github.com/roomscaler/roomscaler/test/lab

go 1.26.0

replace github.com/roomscaler/roomscaler => ../..

require (
	github.com/google/go-cmp v0.7.0
	github.com/kedacore/keda/v2 v2.21.0
	github.com/spf13/cobra v1.10.2
	golang.org/x/net v0.62.0
	google.golang.org/grpc v1.85.0
)

require (
	github.com/inconshreveable/mousetrap v1.1.0 // indirect
	github.com/spf13/pflag v1.0.10 // indirect
)

require (
	github.com/roomscaler/roomscaler v0.0.0-00010101000000-000000000000
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/text v0.43.0 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20260904194346-d0f1323225a4 // indirect
	google.golang.org/protobuf v1.36.12 // indirect
)
