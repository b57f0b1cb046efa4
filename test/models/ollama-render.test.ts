import { renderRequest } from '../../src/models/ollama/client.js';
import { checkOllama } from '../support/provider-apis/check-ollama.js';
import { request } from './builders.js';
import { goldenRequest, oddMessages } from './golden.js';

test('a whole request, byte by byte', () => {
  const body = renderRequest(goldenRequest('llama-test', {}));
  expect(JSON.stringify(body, null, 2)).toMatchInlineSnapshot(`
   "{
     "model": "llama-test",
     "messages": [
       {
         "role": "system",
         "content": "You are terse."
       },
       {
         "role": "user",
         "content": "What is in these?",
         "images": [
           "aGk="
         ]
       },
       {
         "role": "assistant",
         "content": "Let me look.",
         "tool_calls": [
           {
             "function": {
               "name": "read_file",
               "arguments": {
                 "path": "a.txt"
               }
             }
           },
           {
             "function": {
               "name": "read_file",
               "arguments": {
                 "path": "b.txt"
               }
             }
           }
         ]
       },
       {
         "role": "tool",
         "tool_name": "read_file",
         "content": "hello"
       },
       {
         "role": "tool",
         "tool_name": "read_file",
         "content": "Error: no such file"
       },
       {
         "role": "user",
         "content": "And?"
       },
       {
         "role": "assistant",
         "content": "One is not there."
       },
       {
         "role": "user",
         "content": "Thanks."
       }
     ],
     "tools": [
       {
         "type": "function",
         "function": {
           "name": "read_file",
           "description": "Reads a file.",
           "parameters": {
             "type": "object",
             "properties": {
               "path": {
                 "type": "string"
               }
             },
             "required": [
               "path"
             ]
           }
         }
       }
     ],
     "stream": true,
     "options": {
       "num_predict": 1000
     }
   }"
  `);
});

test('what has no words is left out: system, tools', () => {
  expect(renderRequest(request({ model: 'llama-test', system: ' ' }))).toMatchInlineSnapshot(`
   {
     "messages": [
       {
         "content": "hello",
         "role": "user",
       },
     ],
     "model": "llama-test",
     "options": {
       "num_predict": 1000,
     },
     "stream": true,
   }
  `);
});

test('pictures that it cannot take become words; ids, names and inputs are made to fit; outcomes read differently', () => {
  const { messages } = renderRequest(request({ model: 'llama-test', system: '', messages: oddMessages }));
  expect(messages).toMatchInlineSnapshot(`
   [
     {
       "content": "[An image (image/jpeg) at https://example.org/a.jpg that cannot be shown here.]
   [An image (image/bmp) that cannot be shown here.]
   [An image (image/png) that cannot be shown here.]
   [An image (image/png) that cannot be shown here. It is kept as body/7.]
   look",
       "role": "user",
     },
     {
       "content": "",
       "role": "assistant",
       "tool_calls": [
         {
           "function": {
             "arguments": {
               "_value": [
                 1,
               ],
             },
             "name": "read_file_",
           },
         },
         {
           "function": {
             "arguments": {
               "_stored": "{"a… (9 bytes in all: body/1)",
             },
             "name": "9lives",
           },
         },
         {
           "function": {
             "arguments": {},
             "name": "read_file",
           },
         },
       ],
     },
     {
       "content": "Rejected: this call did not run.
   why",
       "role": "tool",
       "tool_name": "read_file_",
     },
     {
       "content": "Outcome unknown: this call was interrupted and may or may not have had its effect. Check before repeating it.",
       "role": "tool",
       "tool_name": "9lives",
     },
     {
       "content": "Cancelled: this call was stopped before it started and did not run.
   half �",
       "role": "tool",
       "tool_name": "read_file",
     },
   ]
  `);
});

test('its server takes both', () => {
  expect(checkOllama(renderRequest(goldenRequest('llama-test', {})))).toBeUndefined();
  expect(checkOllama(renderRequest(request({ model: 'llama-test', messages: oddMessages })))).toBeUndefined();
});
