# The binaries of cmd/ on an empty base. Their version is that of the build info: build
# from a git checkout, and .git must be part of the build context.
FROM --platform=$BUILDPLATFORM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG TARGETOS TARGETARCH
RUN CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH go build -trimpath -ldflags='-s -w' -o /out/ ./cmd/...

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/
COPY --from=build /out/ /
USER 65532:65532
# API, external scaler, metrics and health.
EXPOSE 8080 6000 9090
ENTRYPOINT ["/roomscaler"]
