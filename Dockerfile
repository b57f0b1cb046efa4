# Worker, gateway and page, built whole: compiled sources and the workflow bundle, no compiler and no source in the image that runs.
FROM node:22-slim AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci
COPY tsconfig.json tsconfig.build.json ./
COPY scripts scripts
COPY src src
COPY types types
COPY packages packages
COPY web web
RUN node scripts/prepare.mjs && node scripts/keep-optional.mjs && npm prune --omit=dev

FROM node:22-slim
# Temporal's client takes the system's certificates, which the slim image has not: without them no TLS, no Temporal Cloud. Commands run in bubblewrap.
RUN apt-get update && apt-get install -y --no-install-recommends bubblewrap ca-certificates && rm -rf /var/lib/apt/lists/*
# What lies in an image was put there by who built it: nobody is asked (`perdura trust`).
ENV NODE_ENV=production PERDURA_TRUST=1
WORKDIR /app
# What it writes: files of conversations where there is no Redis, and the place of a chat. /app itself stays root's.
RUN install -d -o node -g node memory workspace .perdura
COPY --from=build --chown=node:node /app/package.json ./
COPY --from=build --chown=node:node /app/node_modules node_modules
COPY --from=build --chown=node:node /app/dist dist
COPY --chown=node:node bin bin
COPY --chown=node:node agents agents
COPY --chown=node:node workspace workspace
COPY --chown=node:node templates templates
COPY --chown=node:node data data
USER node
# SIGTERM reaches the worker itself, which lets running turns finish or move.
ENTRYPOINT ["node", "dist/cli/main.js"]
CMD ["worker"]
