FROM python:3.13-slim-bookworm AS build
WORKDIR /source
COPY . .
# The exact versions of the lock file; its hashes cannot be used beside a local directory.
RUN python -m venv /opt/candor \
    && sed -e '/--hash/d' -e 's/ \\$//' constraints.txt > /tmp/versions.txt \
    && /opt/candor/bin/pip install --no-cache-dir --constraint /tmp/versions.txt '.[postgres]'

FROM python:3.13-slim-bookworm
# tini reaps processes that agents leave; bubblewrap and socat are the wall where Landlock is missing.
RUN apt-get update \
    && apt-get install -y --no-install-recommends bubblewrap=0.8.* socat=1.7.* tini=0.19.* \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --uid 10001 --create-home candor \
    && install -d -o candor -g candor -m 0700 /srv/candor
COPY --from=build /opt/candor /opt/candor
USER 10001
# The workspace, the data, the logs and the tokens file lie here.
WORKDIR /srv/candor
VOLUME /srv/candor
# hadolint ignore=DL3064
ENV PATH=/opt/candor/bin:$PATH \
    CANDOR_HOST=0.0.0.0 \
    CANDOR_TOKENS_FILE=tokens
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s \
    CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8000/healthz', timeout=4)"]
ENTRYPOINT ["tini", "--", "candor"]
