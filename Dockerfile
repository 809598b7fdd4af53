# Cloze in a container: docker build -t cloze . && docker run -p 7860:7860 -v cloze-runs:/runs cloze
FROM python:3.12-slim

# Which build of torch: cpu, or one for CUDA that its version has, such as cu130 (--build-arg TORCH=cu130).
ARG TORCH=cpu

ENV PIP_NO_CACHE_DIR=1 PYTHONUNBUFFERED=1 GRADIO_ANALYTICS_ENABLED=False
# Some platforms run it as a user of their own choice, who is in group 0 and has no home.
RUN useradd --create-home --uid 1000 cloze && install -d -o cloze -g 0 -m 775 /runs
WORKDIR /cloze

COPY requirements.txt constraints.txt ./
RUN pip install --extra-index-url "https://download.pytorch.org/whl/${TORCH}" -r requirements.txt -c constraints.txt

# What .dockerignore names; it stays root's, so that the server cannot change its own code, nor compile it at each start.
COPY . .
RUN python -m compileall -q app.py app core_models viz
# A number, because Kubernetes cannot tell that a name is not root's.
USER 1000

ENV CLOZE_HOST=0.0.0.0 PORT=7860 CLOZE_RUNS=/runs HF_HOME=/tmp/huggingface MPLCONFIGDIR=/tmp/matplotlib
EXPOSE 7860
VOLUME /runs
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s \
  CMD ["python", "-c", "import os, urllib.request as r; r.build_opener(r.ProxyHandler({})).open(f'http://127.0.0.1:{os.environ[\"PORT\"]}/health', timeout=4)"]

# SIGTERM saves what trains; Docker waits ten seconds for it.
CMD ["python", "app.py"]
