/**
 * `node scripts/manifests.mjs [--write | --which]`: whether deploy/kubernetes/ is what Helm makes of deploy/helm/perdura with its default values,
 * for people without Helm; --which says which Helm there is. Needs one: PERDURA_TEST_HELM, in ~/.cache/perdura/bin, or on PATH; its Go module has it
 * (`go install helm.sh/helm/v4/cmd/helm@v4.3.2`).
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { findOnPath, runProgram } from './programs.mjs';
import { run } from './report.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const chart = join(root, 'deploy', 'helm', 'perdura');

const MANIFESTS = [
  { name: 'perdura.yaml', about: 'Workers as a Deployment.', values: [] },
  {
    name: 'worker-controller.yaml',
    about: "Workers by Temporal's worker controller.",
    values: ['--set', 'workerController.enabled=true'],
  },
];

function findHelm() {
  const cached = join(homedir(), '.cache', 'perdura', 'bin', 'helm');
  const found = process.env['PERDURA_TEST_HELM'] ?? (existsSync(cached) ? cached : findOnPath('helm'));
  if (found === undefined) throw new Error('helm is not on PATH: go install helm.sh/helm/v4/cmd/helm@v4.3.2');
  return found;
}

async function render(helm, { name, about, values }) {
  const { code, output } = await runProgram(helm, ['template', 'perdura', chart, '--namespace', 'perdura', ...values], { cwd: root });
  if (code !== 0) throw new Error(`helm cannot render ${chart}: ${output}`);
  const head = `# ${about} Made of deploy/helm/perdura: kubectl apply -n perdura -f ${name} (docs/operations/kubernetes.md)\n`;
  return head + output.replace(/^# Source: .*\n/gm, '');
}

await run(async () => {
  const helm = findHelm();
  if (process.argv.includes('--which')) {
    process.stdout.write(helm);
    return 0;
  }
  let isInOrder = true;
  for (const manifest of MANIFESTS) {
    const file = join(root, 'deploy', 'kubernetes', manifest.name);
    const made = await render(helm, manifest);
    if (existsSync(file) && readFileSync(file, 'utf8') === made) continue;
    if (process.argv.includes('--write')) writeFileSync(file, made);
    else {
      process.stderr.write(`${file} is not what the chart makes: \`node scripts/manifests.mjs --write\` repairs it\n`);
      isInOrder = false;
    }
  }
  return isInOrder ? 0 : 1;
});
