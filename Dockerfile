# One static binary, alone in its image: docker buildx build --platform linux/amd64,linux/arm64 --build-arg VERSION=v1.2.3 .
FROM --platform=$BUILDPLATFORM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG TARGETOS=linux TARGETARCH VERSION=dev
RUN GOOS=$TARGETOS GOARCH=$TARGETARCH make build VERSION="$VERSION"

FROM scratch
# Time zones are in the binary. Roots are for rediss:// and for jobs that call https://.
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /src/bin/solotick /solotick
USER 65532:65532
EXPOSE 9747
ENTRYPOINT ["/solotick"]
CMD ["run"]
