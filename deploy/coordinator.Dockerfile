# docker build -f deploy/coordinator.Dockerfile -t parallax .
FROM rust:1.95-bookworm AS build
WORKDIR /src
COPY . .
RUN cargo build --release --locked -p parallax-coordinator --bin parallax

FROM debian:bookworm-slim
RUN useradd --system --uid 10001 --home-dir /var/lib/parallax --shell /usr/sbin/nologin parallax \
    && install -d -o parallax -g parallax -m 0700 /var/lib/parallax
COPY --from=build /src/target/release/parallax /usr/local/bin/parallax
# As in coordinator.service: two arenas, and large blocks returned to the system.
ENV MALLOC_ARENA_MAX=2 MALLOC_MMAP_THRESHOLD_=131072 MALLOC_TRIM_THRESHOLD_=131072
USER parallax
VOLUME /var/lib/parallax
EXPOSE 8080/tcp 7443/udp
STOPSIGNAL SIGTERM
ENTRYPOINT ["parallax"]
CMD ["serve", "--data", "/var/lib/parallax", "--listen", "0.0.0.0:8080", "--mesh-listen", "0.0.0.0:7443"]
