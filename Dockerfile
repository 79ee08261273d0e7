# One static binary, alone in its image: docker buildx build --platform linux/amd64,linux/arm64 --build-arg VERSION=v0.1.0 .
FROM --platform=$BUILDPLATFORM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG TARGETOS=linux TARGETARCH VERSION=dev
RUN GOOS=$TARGETOS GOARCH=$TARGETARCH make build PROGRAMS=./cmd/solotick VERSION="$VERSION"

FROM scratch
# Time zones are in the binary. Roots are for rediss:// and for jobs that call https://.
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /src/bin/solotick /usr/local/bin/solotick
# So that `kubectl exec … -- solotick status` works, and a job can have the command `solotick`.
ENV PATH=/usr/local/bin
USER 65532:65532
EXPOSE 9747
ENTRYPOINT ["/usr/local/bin/solotick"]
CMD ["run"]
