/** Loaded before a worker (`--require`): what a storm wants to be different about it, as Temporal's own options, from STORM_WORKER. */
const { Worker } = require(require.resolve('@temporalio/worker', { paths: [process.env.PERDURA_TEST_PRODUCT] }));

const create = Worker.create;
Worker.create = (options) => create.call(Worker, { ...options, ...JSON.parse(process.env.STORM_WORKER) });
