# Cloze in a container: docker build -t cloze . && docker run -p 7860:7860 -v cloze-runs:/runs cloze
FROM python:3.12-slim

# Which build of torch: cpu, or one for CUDA such as cu128 (--build-arg TORCH=cu128).
ARG TORCH=cpu

ENV PIP_NO_CACHE_DIR=1 PYTHONUNBUFFERED=1 GRADIO_ANALYTICS_ENABLED=False
RUN useradd --create-home --uid 1000 cloze && mkdir /runs && chown cloze /runs
WORKDIR /cloze

COPY requirements.txt constraints.txt ./
RUN pip install --extra-index-url "https://download.pytorch.org/whl/${TORCH}" -r requirements.txt -c constraints.txt

COPY --chown=cloze . .
USER cloze

ENV CLOZE_HOST=0.0.0.0 PORT=7860 CLOZE_RUNS=/runs
EXPOSE 7860
VOLUME /runs
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s \
  CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:7860/health', timeout=4)"]

# SIGTERM saves what trains; Docker waits ten seconds for it.
CMD ["python", "app.py"]
