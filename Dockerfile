# Lockstep on Debian 12, built from this tree:
#
#   docker build -t lockstep .
#   docker run --rm -v "$PWD:/work" lockstep train --model cnn --data glyphs --run /work/runs/first
#
# The first stage has the compiler, the second what the command needs to run.
FROM debian:12 AS build
WORKDIR /lockstep
COPY tools/install-deps tools/install-deps
RUN tools/install-deps build && rm -rf /var/lib/apt/lists/*
COPY . .
RUN cmake -S . -B build -G Ninja -DLS_TESTS=OFF \
    && cmake --build build \
    && DESTDIR=/installed cmake --install build --prefix /usr/local

FROM debian:12-slim
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends ca-certificates iproute2 libcurl4 libhwloc15 libjansson4 libmicrohttpd12 \
        libopenmpi3 libpng16-16 libturbojpeg0 libutf8proc2 libxxhash0 openmpi-bin openssh-client zlib1g \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --create-home --uid 1000 lockstep \
    && install -d -o lockstep /work
COPY --from=build /installed/usr/local /usr/local
RUN ldconfig
USER 1000
WORKDIR /work
ENTRYPOINT ["lockstep"]
CMD ["--help"]
