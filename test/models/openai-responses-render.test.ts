import { renderResponses } from '../../src/models/openai/client.js';
import { checkResponses } from '../support/provider-apis/check-responses.js';
import { opaque, request } from './builders.js';
import { goldenRequest, oddMessages } from './golden.js';

test('a whole request, byte by byte', () => {
  const body = renderResponses(
    goldenRequest('gpt-test', {
      beforeText: opaque({ type: 'message_phase', phase: 'commentary' }, 'openai-responses'),
      beforeCall: opaque(
        { type: 'reasoning', id: 'rs_1', summary: [], content: [], encrypted_content: 'c2ln', status: 'completed' },
        'openai-responses',
      ),
    }),
  );
  expect(JSON.stringify(body, null, 2)).toMatchInlineSnapshot(`
   "{
     "model": "gpt-test",
     "max_output_tokens": 1000,
     "instructions": "You are terse.",
     "tools": [
       {
         "type": "function",
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
         },
         "strict": false
       }
     ],
     "input": [
       {
         "type": "message",
         "role": "user",
         "content": [
           {
             "type": "input_image",
             "detail": "auto",
             "image_url": "data:image/png;base64,aGk="
           },
           {
             "type": "input_text",
             "text": "What is in these?"
           }
         ]
       },
       {
         "type": "message",
         "role": "assistant",
         "content": "Let me look.",
         "phase": "commentary"
       },
       {
         "type": "reasoning",
         "id": "rs_1",
         "summary": [],
         "encrypted_content": "c2ln"
       },
       {
         "type": "function_call",
         "call_id": "turn_0001_c1",
         "name": "read_file",
         "arguments": "{\\"path\\":\\"a.txt\\"}"
       },
       {
         "type": "function_call",
         "call_id": "turn_0001_c2",
         "name": "read_file",
         "arguments": "{\\"path\\":\\"b.txt\\"}"
       },
       {
         "type": "function_call_output",
         "call_id": "turn_0001_c1",
         "output": "hello"
       },
       {
         "type": "function_call_output",
         "call_id": "turn_0001_c2",
         "output": "Error: no such file"
       },
       {
         "type": "message",
         "role": "user",
         "content": [
           {
             "type": "input_text",
             "text": "And?"
           }
         ]
       },
       {
         "type": "message",
         "role": "assistant",
         "content": "One is not there."
       },
       {
         "type": "message",
         "role": "user",
         "content": [
           {
             "type": "input_text",
             "text": "Thanks."
           }
         ]
       }
     ],
     "store": false,
     "include": [
       "reasoning.encrypted_content"
     ],
     "stream": true
   }"
  `);
});

test('what has no words is left out: system, tools', () => {
  expect(renderResponses(request({ model: 'gpt-test', system: ' ' }))).toMatchInlineSnapshot(`
   {
     "include": [
       "reasoning.encrypted_content",
     ],
     "input": [
       {
         "content": [
           {
             "text": "hello",
             "type": "input_text",
           },
         ],
         "role": "user",
         "type": "message",
       },
     ],
     "max_output_tokens": 1000,
     "model": "gpt-test",
     "store": false,
     "stream": true,
   }
  `);
});

test('pictures that it cannot take become words; ids, names and inputs are made to fit; outcomes read differently', () => {
  const { input } = renderResponses(request({ model: 'gpt-test', system: '', messages: oddMessages }));
  expect(input).toMatchInlineSnapshot(`
   [
     {
       "content": [
         {
           "detail": "auto",
           "image_url": "https://example.org/a.jpg",
           "type": "input_image",
         },
         {
           "text": "[An image (image/bmp) that cannot be shown here.]",
           "type": "input_text",
         },
         {
           "text": "[An image (image/png) that cannot be shown here.]",
           "type": "input_text",
         },
         {
           "text": "[An image (image/png) that cannot be shown here. It is kept as body/7.]",
           "type": "input_text",
         },
         {
           "text": "look",
           "type": "input_text",
         },
       ],
       "role": "user",
       "type": "message",
     },
     {
       "arguments": "{"_value":[1]}",
       "call_id": "t_c",
       "name": "read_file_",
       "type": "function_call",
     },
     {
       "arguments": "{"_stored":"{\\"a… (9 bytes in all: body/1)"}",
       "call_id": "t_c-2",
       "name": "9lives",
       "type": "function_call",
     },
     {
       "arguments": "{}",
       "call_id": "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
       "name": "read_file",
       "type": "function_call",
     },
     {
       "call_id": "t_c",
       "output": "Rejected: this call did not run.
   why",
       "type": "function_call_output",
     },
     {
       "call_id": "t_c-2",
       "output": "Outcome unknown: this call was interrupted and may or may not have had its effect. Check before repeating it.",
       "type": "function_call_output",
     },
     {
       "call_id": "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
       "output": "Cancelled: this call was stopped before it started and did not run.
   half �",
       "type": "function_call_output",
     },
   ]
  `);
});

test('its server takes both', () => {
  expect(
    checkResponses(
      renderResponses(
        goldenRequest('gpt-test', {
          beforeText: opaque({ type: 'message_phase', phase: 'commentary' }, 'openai-responses'),
          beforeCall: opaque(
            { type: 'reasoning', id: 'rs_1', summary: [], content: [], encrypted_content: 'c2ln', status: 'completed' },
            'openai-responses',
          ),
        }),
      ),
    ),
  ).toBeUndefined();
  expect(checkResponses(renderResponses(request({ model: 'gpt-test', messages: oddMessages })))).toBeUndefined();
});

test('a model that does not reason is not asked for its reasoning', () => {
  const asked = ['gpt-4o', 'gpt-4.1-mini', 'ft:gpt-4o:x', 'gpt-5-chat-latest', 'gpt-5.5', 'o3'].map(
    (model) => renderResponses(request({ model })).include,
  );
  expect(asked.map((include) => include?.length ?? 0)).toEqual([0, 0, 0, 0, 1, 1]);
});

test('the least that may be asked for is asked for', () => {
  expect(renderResponses(request({ maxTokens: 1 })).max_output_tokens).toBe(16);
});

test('a request names its conversation for the prompt cache', () => {
  const body = renderResponses(request({ model: 'gpt-test', cacheKey: 'c0ffee' }));
  expect(body).toMatchObject({ prompt_cache_key: 'c0ffee' });
  expect(checkResponses(body)).toBeUndefined();
  expect(renderResponses(request({ model: 'gpt-test', cacheKey: 'c0ffee' }), { takesCacheKey: false })).not.toHaveProperty(
    'prompt_cache_key',
  );
});
