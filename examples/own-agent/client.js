import { createClient } from 'perdura';

const perdura = await createClient();
const id = process.argv[3] ?? 'my-book';
const { text } = await perdura.send(id, process.argv[2] ?? 'I had tea for 3.50.', { start: { agent: 'ledger' } });
console.log(text);
await perdura.close();
