# The worker, built whole: compiled sources and the workflow bundle, no compiler and no source in the image that runs.
FROM node:22-slim AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci
COPY tsconfig.json tsconfig.build.json ./
COPY scripts scripts
COPY src src
RUN node scripts/prepare.mjs && npm prune --omit=dev

FROM node:22-slim
ENV NODE_ENV=production
WORKDIR /app
COPY --from=build --chown=node:node /app/package.json ./
COPY --from=build --chown=node:node /app/node_modules node_modules
COPY --from=build --chown=node:node /app/dist dist
COPY --chown=node:node bin bin
COPY --chown=node:node agents agents
COPY --chown=node:node workspace workspace
USER node
# SIGTERM reaches the worker itself, which lets running turns finish or move.
ENTRYPOINT ["node", "dist/cli/main.js"]
CMD ["worker"]
