import { createClient } from 'perdura';

const perdura = await createClient();
const [id = 'my-desk', text = 'Which tickets are open?'] = process.argv.slice(2);
await perdura.start(id, { agent: 'desk' });
await perdura.dispatch(id, { type: 'ticket.opened', payload: { id: 7, title: 'The printer is on fire' } });
const answer = await perdura.send(id, text);
console.log(answer.text);
await perdura.close();
