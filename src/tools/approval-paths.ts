/**
 * Files that need a person's approval, unless a rule of the agent says otherwise: before they are written, since another program obeys or
 * runs them later; before they are read, since they hold secrets. What is never written is in protected-paths.ts.
 *
 * Not in the tables: what its program runs only when it is named (scripts, sources), and what is changed every day and can only name what
 * is in the tables itself (tsconfig.json, a package.json without its scripts, .gitignore, .editorconfig).
 */
import { relative, resolve } from 'node:path';
import { isNamed, plainNames } from './protected-paths.js';
import type { Examined } from './tool.js';
import { enterWorkspace, type Workspace } from './workspace.js';
import { PathRefused, WriteRefused } from './workspace-guard.js';

/** Everything in them. */
const RUN_FOLDERS = [
  // Packages and environments: imported, or run by name.
  ...['node_modules', '.venv', 'venv', 'site-packages', '__pycache__', '.bundle', '.yarn', '.direnv', '.terraform'],
  // Run by a host of repositories, with its keys.
  ...['.github', '.gitlab', '.gitea', '.forgejo', '.circleci', '.buildkite', '.woodpecker'],
  // Run by git where core.hooksPath is set to them, as projects do.
  ...['.githooks', '.git-hooks', '.hooks'],
  // Obeyed by editors, agents, containers and tools.
  ...['.devcontainer', '.cargo', '.config', '.vim', '.nvim', '.emacs.d', '.zed', '.fleet', '.gemini', '.codex', '.windsurf', '.continue'],
  ...[
    '.helix',
    '.run',
    '.storybook',
    '.jupyter',
    '.ipython',
    '.mvn',
    '.roo',
    '.kiro',
    '.junie',
    '.amazonq',
    '.opencode',
    '.goose',
    '.trae',
  ],
  ...['.aws', '.docker', '.kube', '.gnupg'],
];

const RUN_FILES = [
  // Git, beside what is refused.
  ...['.gitattributes', '.gitconfig', '.lfsconfig'],
  // Shells and what they start.
  ...['.zshenv', '.zprofile', '.zlogin', '.zlogout', '.bash_login', '.bash_logout', '.bash_aliases', '.login', '.logout', '.cshenv'],
  ...['.xprofile', '.xsession', '.gdbinit', '.lldbinit', '.rprofile', '.renviron', '.pythonstartup', '.pdbrc.py'],
  ...['.ghci', '.iex.exs', '.sbtopts', '.jvmopts', 'ansible.cfg', 'ipython_config.py', '.devcontainer.json', '.gitpod.yml', '.replit'],
  // Told to agents as what people want.
  ...['agents.md', 'agents.override.md', 'claude.md', 'claude.local.md', 'gemini.md', '.cursorrules', '.windsurfrules', '.clinerules'],
  ...['agent.md', 'qwen.md', 'warp.md', 'crush.md', 'copilot-instructions.md', '.roorules', '.goosehints', '.aider.conf.yml'],
  ...['opencode.json', 'opencode.jsonc', 'crush.json', '.crush.json'],
  // Builds and tasks.
  ...['makefile', 'gnumakefile', 'bsdmakefile', 'justfile', '.justfile', 'rakefile', 'jakefile.js', 'gemfile', 'podfile', 'fastfile'],
  ...['brewfile', 'procfile', 'vagrantfile', 'taskfile.yml', 'taskfile.yaml', 'magefile.go', 'build.rs', 'cargo.toml', 'build.zig'],
  ...['sconstruct', 'sconscript', 'wscript', 'meson.build', 'cmakelists.txt', 'pom.xml', 'build.xml', 'gradlew', 'gradle.properties'],
  ...['mvnw', 'build', 'build.bazel', 'workspace', 'workspace.bazel', 'module.bazel', 'flake.nix', 'shell.nix', 'default.nix'],
  ...['gulpfile.js', 'gruntfile.js', 'deno.json', 'deno.jsonc', 'bunfig.toml', '.pnpmfile.cjs', '.pnp.cjs', '.pnp.loader.mjs'],
  ...['.pnpmfile.mjs', 'pnpm-workspace.yaml', 'nodemon.json', '.eleventy.js'],
  ...['build.sbt', 'build.sc', 'mix.exs', 'project.clj', 'deps.edn'],
  ...['directory.build.props', 'directory.build.targets', 'rust-toolchain', 'rust-toolchain.toml', 'guardfile', 'capfile', 'thorfile'],
  ...['dangerfile', 'tiltfile', 'earthfile', 'snakefile', 'dune', 'xmake.lua', 'premake5.lua', 'configure.ac', 'dub.sdl', 'devenv.nix'],
  // Python: run by its start, its installers and its test runners.
  ...['setup.py', 'setup.cfg', 'pyproject.toml', 'conftest.py', 'pytest.ini', 'tox.ini', 'noxfile.py', 'fabfile.py'],
  ...['sitecustomize.py', 'usercustomize.py', '.rspec', 'pipfile', 'pylintrc', 'mypy.ini', '.mypy.ini', '.flake8', 'mkdocs.yml'],
  // Linters that load code.
  ...['.rubocop.yml', '.rubocop.yaml', '.credo.exs', '.formatter.exs'],
  // Managers of hooks and versions.
  ...['.pre-commit-config.yaml', '.pre-commit-hooks.yaml', 'lefthook.yml', 'lefthook.yaml', '.lefthook.yml', '.overcommit.yml'],
  ...['.simple-git-hooks.json', 'simple-git-hooks.json'],
  ...['.tool-versions', 'mise.toml', '.mise.toml', 'mise.local.toml'],
  // Run elsewhere, with keys.
  ...['.gitlab-ci.yml', 'jenkinsfile', '.travis.yml', 'azure-pipelines.yml', 'bitbucket-pipelines.yml', 'appveyor.yml', '.drone.yml'],
  ...['.cirrus.yml', 'buildspec.yml', 'codemagic.yaml', 'bitrise.yml', 'action.yml', 'action.yaml', 'netlify.toml', 'vercel.json'],
  ...['firebase.json', 'wrangler.toml', 'serverless.yml', 'skaffold.yaml'],
  ...['cloudbuild.yaml', 'dockerfile', 'containerfile', 'compose.yml', 'compose.yaml', '.htaccess', '.user.ini'],
  // Editors and their language servers.
  ...['.exrc', '.nvim.lua', '.dir-locals.el', '.ycm_extra_conf.py', '.clangd'],
];

const RUN_PATTERNS = [
  // `.eslintrc.json`, `.babelrc`, `.inputrc`, `.vimrc`, `.bazelrc`, `.mocharc.cjs`: settings, by the oldest of habits.
  /^\.[a-z0-9_-]+rc(\.[a-z]+)?$/,
  // `jest.config.ts`, `vite.config.js`, `eslint.config.mjs`, `vitest.workspace.ts`: programs that are settings.
  /\.(config|conf|setup|workspace)(\.[a-z0-9_-]+)?\.([cm]?[jt]sx?|coffee)$/,
  /^(babel|jest|ava|stylelint|commitlint|release|lint-staged)\.config\.json$/,
  // `gatsby-node.js`, `truffle-config.js`, `ember-cli-build.js`.
  /-(config|node|build)\.[cm]?[jt]s$/,
  /^(gulpfile|gruntfile|\.?simple-git-hooks)\.([cm]?[jt]s|coffee)$/,
  /^(docker-compose|compose|dockerfile|containerfile|jenkinsfile|makefile)[.-](?!(md|txt|rst)$)/,
  /\.(dockerfile|mk|cmake|gemspec|gradle|bzl|pth|rake|targets|props|[a-z]+proj)$/,
  /\.gradle\.kts$/,
  /\.(code-workspace|sublime-project)$/,
];

/** Why a person has to approve a write to this; `path` is relative to the workspace. */
export function reasonToAskBeforeWriting(path: string): string | undefined {
  const names = plainNames(path);
  const file = names.at(-1) ?? '';
  const folder = names.find((name) => isNamed(name, RUN_FOLDERS));
  if (folder !== undefined) return `what lies in ${folder} is run or obeyed later by other programs`;
  if (isNamed(file, RUN_FILES) || RUN_PATTERNS.some((pattern) => pattern.test(file))) {
    return `${file} is run or obeyed later by other programs`;
  }
  return undefined;
}

const SECRET_FOLDERS = ['.ssh', '.gnupg', '.aws', '.azure', '.password-store'];
const SECRET_FILES = [
  ...['.envrc', '.netrc', '_netrc', '.npmrc', '.yarnrc.yml', '.pypirc', '.pgpass', '.my.cnf', '.git-credentials', '.htpasswd', '.boto'],
  ...['.terraformrc', '.vault-token', 'credentials.json', 'service-account.json', 'kubeconfig', '.dockercfg', 'auth.json', 'secrets.yml'],
  ...['secrets.yaml', 'secrets.json', 'secrets.toml', 'master.key', 'terraform.tfstate', '.credentials', '.mcp.json', 'mcp.json'],
  ...['credentials', '.claude.json', '.dockerconfigjson', '.s3cfg', '.vault_pass', '.vault-password', 'rclone.conf', 'wp-config.php'],
  ...['client_secret.json', 'service_account.json', 'serviceaccountkey.json', 'keystore.properties', 'credentials.tfrc.json'],
];
/** What was typed, passwords among it: `.bash_history`, `.psql_history`. */
const HISTORY = /^\.[a-z_]+_?history$/;
const SECRET_PATTERNS = [
  /^id_[a-z0-9_-]+$/,
  /\.(pem|key|p12|pfx|jks|keystore|kdbx|ppk|ovpn|tfvars|asc|gpg)$/,
  /^[.#]*\.env([.~#].*)?$/,
  /\.env$/,
  /^env\.(local|dev|development|test|staging|prod|production)$/,
  HISTORY,
];
/** Settings that hold keys, by their last two names. */
const SECRET_PLACES = [
  ...['.docker/config.json', '.kube/config', '.git/config', '.config/gh', 'gh/hosts.yml', '.cargo/credentials', '.cargo/credentials.toml'],
  ...['gcloud/credentials.db', 'gcloud/application_default_credentials.json', '.gem/credentials', '.m2/settings.xml'],
  ...['.config/hub', '.databricks/token'],
];
/** Shown to others as a model of one, or the public half of a pair. */
const NO_SECRET = /^(\.env|.*\.env)\.(example|sample|template|dist|defaults?)$|\.pub$/;

/** Why a person has to approve that this is shown; `path` is relative to the workspace, of a file or a folder. */
export function reasonToAskBeforeReading(path: string): string | undefined {
  const names = plainNames(path);
  const file = names.at(-1) ?? '';
  if (NO_SECRET.test(file)) return undefined;
  const folder = names.find((name) => isNamed(name, SECRET_FOLDERS));
  if (folder !== undefined) return `what lies in ${folder} may be a secret`;
  // `id_rsa.bak` holds what id_rsa does.
  const kept = file.replace(/(\.(bak|old|orig|save|txt)|~)+$/, '');
  const isSecret =
    isNamed(file, SECRET_FILES) ||
    [file, kept].some((name) => SECRET_FILES.includes(name) || SECRET_PATTERNS.some((pattern) => pattern.test(name))) ||
    SECRET_PLACES.some((place) => place === names.slice(-2).join('/')) ||
    // A submodule's or a worktree's.
    (file === 'config' && names.includes('.git'));
  return isSecret ? `${file} may hold secrets` : undefined;
}

/**
 * What a file tool reports of a path before the call is allowed: where it leads, and whether a person has to approve it. `resolved`: as the
 * run will do it; what it refuses, the run refuses. `whyAsk`: of a path relative to the workspace.
 */
export async function examinePath(
  workspace: string,
  path: string,
  resolved: (place: Workspace) => Promise<string>,
  whyAsk: (path: string) => string | undefined = () => undefined,
): Promise<Examined> {
  try {
    const place = await enterWorkspace(workspace);
    const root = await place.resolve('.');
    const real = relative(root, await resolved(place)) || '.';
    // By both names: a link may have a harmless one, or lead to a file that has.
    const why = whyAsk(real) ?? whyAsk(relative(root, resolve(root, path)));
    return { real: { path: real }, ...(why !== undefined && { asks: { why } }) };
  } catch (error) {
    if (error instanceof PathRefused || error instanceof WriteRefused) return {};
    throw error;
  }
}
