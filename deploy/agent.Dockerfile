# docker build -f deploy/agent.Dockerfile -t parallax-agent .
FROM rust:1.95-bookworm AS build
WORKDIR /src
COPY . .
RUN cargo build --release --locked -p parallax-agent --bin parallax-agent

FROM debian:bookworm-slim
RUN useradd --system --uid 10002 --home-dir /var/lib/parallax-agent --shell /usr/sbin/nologin parallax-agent \
    && install -d -o parallax-agent -g parallax-agent -m 0700 /var/lib/parallax-agent
COPY --from=build /src/target/release/parallax-agent /usr/local/bin/parallax-agent
USER parallax-agent
VOLUME /var/lib/parallax-agent
STOPSIGNAL SIGTERM
ENTRYPOINT ["parallax-agent"]
CMD ["run", "--data", "/var/lib/parallax-agent"]
