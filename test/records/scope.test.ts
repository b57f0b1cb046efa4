import fc from 'fast-check';
import { ID_PATTERN } from '../../src/conversation/protocol/contract.js';
import { isScope, TENANT_PATTERN } from '../../src/conversation/protocol/limits.js';
import { readStart } from '../../src/conversation/protocol/input.js';
import { qualifiedScope, scopeParts } from '../../src/records/identity.js';
import { toFileName } from '../../src/stores/file/paths.js';

const name = fc.stringMatching(ID_PATTERN);
const tenant = fc.stringMatching(TENANT_PATTERN);

test('two scopes have one whole name only where tenant and name are the same, and the name tells both', () => {
  const scope = fc.record({ tenant: fc.option(tenant, { nil: undefined }), scope: name });
  fc.assert(
    fc.property(scope, scope, (a, b) => {
      const [one, other] = [qualifiedScope(a.tenant, a.scope), qualifiedScope(b.tenant, b.scope)];
      expect(one === other).toBe(a.tenant === b.tenant && a.scope === b.scope);
      expect(toFileName(one) === toFileName(other)).toBe(one === other);
      expect(scopeParts(one)).toEqual(a.tenant === undefined ? { scope: a.scope } : a);
      expect(isScope(one)).toBe(true);
    }),
  );
});

test('no start can name a scope that is a tenant’s', () => {
  fc.assert(
    fc.property(tenant, name, (of, scope) => {
      const whole = qualifiedScope(of, scope);
      expect(readStart({ scope: whole }).ok).toBe(false);
      expect(readStart({ agent: whole }).ok).toBe(false);
      expect(readStart({ scope, tenant: of })).toMatchObject({ ok: true, value: { scope: whole, tenant: of } });
    }),
  );
});

test('what is no tenant is refused', () => {
  for (const bad of ['', 'A', 'a.b', '../x', '-a', 'a/b', 'a b', 'x'.repeat(40), 7, {}, ['acme']]) {
    expect(readStart({ tenant: bad })).toMatchObject({ ok: false, reason: expect.stringContaining('start.tenant') as string });
  }
});
