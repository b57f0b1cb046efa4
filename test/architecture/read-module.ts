/** What the guards want to know of one source file, read from its syntax tree: a comment or a text that looks like code is neither. */
import ts from 'typescript';

export interface Import {
  readonly specifier: string;
  readonly line: number;
  /** `type`: gone after compilation. `lazy`: `import()` or `require` when the line is reached. */
  readonly kind: 'runtime' | 'type' | 'lazy';
}

export interface Use {
  readonly line: number;
  readonly text: string;
}

export interface Module {
  readonly imports: readonly Import[];
  /** Reads of `process.env`, however spelled. */
  readonly environment: readonly Use[];
  /** Module-level variables that can change: `let`, `var`, and collections made with `new` that are not typed as read-only. */
  readonly moduleState: readonly Use[];
  /** Answers that differ from call to call: the clock and chance. */
  readonly impure: readonly Use[];
}

export function readModule(path: string, text: string): Module {
  const file = ts.createSourceFile(path, text, ts.ScriptTarget.ES2022, true);
  const imports: Import[] = [];
  const environment: Use[] = [];
  const impure: Use[] = [];
  const lineOf = (node: ts.Node): number => file.getLineAndCharacterOfPosition(node.getStart(file)).line + 1;
  const use = (node: ts.Node): Use => ({ line: lineOf(node), text: node.getText(file).replace(/\s+/g, ' ').slice(0, 80) });

  const visit = (node: ts.Node): void => {
    const imported = importOf(node);
    if (imported) imports.push({ ...imported, line: lineOf(node) });
    if (readsEnvironment(node)) environment.push(use(node));
    if (asksClockOrChance(node)) impure.push(use(node));
    ts.forEachChild(node, visit);
  };
  visit(file);
  return { imports, environment, moduleState: file.statements.flatMap(changingDeclarations).map(use), impure };
}

function importOf(node: ts.Node): Omit<Import, 'line'> | undefined {
  if (ts.isImportDeclaration(node)) return { specifier: textOf(node.moduleSpecifier), kind: isTypeImport(node) ? 'type' : 'runtime' };
  if (ts.isExportDeclaration(node) && node.moduleSpecifier) {
    return { specifier: textOf(node.moduleSpecifier), kind: isTypeExport(node) ? 'type' : 'runtime' };
  }
  if (ts.isImportTypeNode(node)) return { specifier: textOf(node.argument), kind: 'type' };
  if (ts.isExternalModuleReference(node)) return { specifier: textOf(node.expression), kind: 'runtime' };
  if (ts.isCallExpression(node) && isLoading(node.expression)) return { specifier: textOf(node.arguments[0]), kind: 'lazy' };
  return undefined;
}

function isTypeImport({ importClause: clause }: ts.ImportDeclaration): boolean {
  if (!clause) return false;
  if (clause.phaseModifier === ts.SyntaxKind.TypeKeyword) return true;
  const named = clause.namedBindings;
  return !clause.name && named !== undefined && ts.isNamedImports(named) && areTypes(named.elements);
}

function isTypeExport({ isTypeOnly, exportClause }: ts.ExportDeclaration): boolean {
  return isTypeOnly || (exportClause !== undefined && ts.isNamedExports(exportClause) && areTypes(exportClause.elements));
}

function areTypes(elements: readonly { readonly isTypeOnly: boolean }[]): boolean {
  return elements.length > 0 && elements.every((element) => element.isTypeOnly);
}

/** `require.resolve` names a path and loads nothing. */
function isLoading(callee: ts.Expression): boolean {
  return callee.kind === ts.SyntaxKind.ImportKeyword || (ts.isIdentifier(callee) && callee.text === 'require');
}

/** A specifier that is computed is shown as it stands: it can match no row. */
function textOf(node: ts.Node | undefined): string {
  if (node && ts.isLiteralTypeNode(node)) return textOf(node.literal);
  return node && ts.isStringLiteralLike(node) ? node.text : (node?.getText() ?? '');
}

function readsEnvironment(node: ts.Node): boolean {
  if (isMember(node, 'process', 'env')) return true;
  if (ts.isVariableDeclaration(node) && node.initializer && isNamed(node.initializer, 'process') && ts.isObjectBindingPattern(node.name)) {
    return node.name.elements.some((element) => (element.propertyName ?? element.name).getText() === 'env');
  }
  if (!ts.isImportDeclaration(node) || !/^(node:)?process$/.test(textOf(node.moduleSpecifier))) return false;
  const named = node.importClause?.namedBindings;
  return (
    named !== undefined &&
    ts.isNamedImports(named) &&
    named.elements.some((element) => (element.propertyName ?? element.name).text === 'env')
  );
}

const CLOCK_AND_CHANCE = [
  ['Date', 'now'],
  ['Math', 'random'],
  ['performance', 'now'],
  ['crypto', 'randomUUID'],
  ['crypto', 'getRandomValues'],
] as const;

function asksClockOrChance(node: ts.Node): boolean {
  if (CLOCK_AND_CHANCE.some(([object, property]) => isMember(node, object, property))) return true;
  if (ts.isNewExpression(node)) return isNamed(node.expression, 'Date') && (node.arguments ?? []).length === 0;
  return ts.isCallExpression(node) && isNamed(node.expression, 'Date');
}

function isMember(node: ts.Node, object: string, property: string): boolean {
  if (ts.isPropertyAccessExpression(node)) return node.name.text === property && isNamed(node.expression, object);
  return ts.isElementAccessExpression(node) && textOf(node.argumentExpression) === property && isNamed(node.expression, object);
}

/** `process` and `globalThis.process` alike. */
function isNamed(node: ts.Expression, name: string): boolean {
  return ts.isIdentifier(node) ? node.text === name : isMember(node, 'globalThis', name);
}

const COLLECTIONS: readonly string[] = ['Map', 'Set', 'WeakMap', 'WeakSet', 'Array'];

function changingDeclarations(statement: ts.Statement): ts.Node[] {
  if (!ts.isVariableStatement(statement)) return [];
  if ((statement.declarationList.flags & ts.NodeFlags.Const) === 0) return [statement];
  return statement.declarationList.declarations.filter(({ initializer, type }) => {
    const made =
      initializer && ts.isNewExpression(initializer) && ts.isIdentifier(initializer.expression) ? initializer.expression.text : '';
    return COLLECTIONS.includes(made) && !/^Readonly/.test(type?.getText() ?? '');
  });
}
