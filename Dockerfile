# docker build -t laudo .
# The service with all its commands; docs/operating.md#in-a-container says how to run it.
ARG PYTHON=docker.io/library/python:3.13-slim

FROM ${PYTHON} AS build
COPY . /source
RUN python -m venv /opt/laudo && /opt/laudo/bin/pip install --no-cache-dir --disable-pip-version-check '/source[server]'

FROM ${PYTHON}
COPY --from=build /opt/laudo /opt/laudo
RUN useradd --uid 10001 --home-dir /var/lib/laudo --no-create-home laudo && install --directory --mode 700 --owner laudo --group laudo /var/lib/laudo
ENV PATH=/opt/laudo/bin:$PATH LAUDO_HOST=0.0.0.0
USER 10001
WORKDIR /var/lib/laudo
EXPOSE 8000
ENTRYPOINT ["laudo"]
CMD ["serve"]
