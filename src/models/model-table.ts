/**
 * Windows and prices of models, of 12 November 2026: made by scripts/model-table.mjs from the table in LiteLLM 1.108.7 (PyPI; MIT License,
 * Copyright (c) 2023 Berri AI), not by hand. Digest of the rows: 306f6198bde77344231b851ef2db7d93
 */

/** By provider: `name window answer flags`, then dollars per million tokens: `input cached write output`, `over` and the same above it. */
export const MODEL_TABLE = `
[anthropic]
claude-fable-5 1000000 128000 ds 10 1 12.5 50
claude-fable-5-1 1000000 128000 ds 10 0.25 12.5 50
claude-haiku-4-5 200000 64000 ds 1 0.1 1.25 5
claude-haiku-5-5 1000000 128000 ds 0.1 0.01 0.125 0.5 100000 0.5 0.05 0.625 2.5
claude-mythos-5 1000000 128000 ds 10 1 12.5 50
claude-mythos-5-1 1000000 128000 ds 10 0.25 12.5 50
claude-mythos-preview 1000000 128000 ds 10 1 12.5 50
claude-opus-4-5 200000 64000 ds 5 0.5 6.25 25
claude-opus-4-6 1000000 128000 ds 5 0.5 6.25 25
claude-opus-4-7 1000000 128000 ds 5 0.5 6.25 25
claude-opus-4-8 1000000 128000 ds 5 0.5 6.25 25
claude-opus-5 1000000 128000 ds 5 0.5 6.25 25
claude-opus-5-5 1000000 128000 ds 4 0.2 5 20
claude-sonnet-4-5 200000 64000 ds 3 0.3 3.75 15
claude-sonnet-4-6 1000000 128000 ds 3 0.3 3.75 15
claude-sonnet-5 1000000 128000 ds 2 0.2 2.5 10
claude-sonnet-5-5 1000000 128000 ds 2 0.1 2.5 10
[openai]
chat-latest 400000 128000 ds 5 0.5 5 30
computer-use-preview 8192 1024 d 3 3 3 12
daybreak-blue-latest 922000 128000 ds 4 0.4 5 20 272000 8 0.8 10 30
daybreak-red-latest 400000 128000 ds 12.5 1.25 15.625 75 272000 25 2.5 31.25 112.5
gpt-3.5-turbo 16385 4096 - 0.5 0.5 0.5 1.5
gpt-3.5-turbo-0125 16385 4096 - 0.5 0.5 0.5 1.5
gpt-3.5-turbo-1106 16385 4096 - 1 1 1 2
gpt-3.5-turbo-16k 16385 4096 - 3 3 3 4
gpt-4 8192 4096 - 30 30 30 60
gpt-4-0613 8192 4096 - 30 30 30 60
gpt-4-1106-preview 128000 4096 - 10 10 10 30
gpt-4-turbo 128000 4096 d 10 10 10 30
gpt-4.1 1047576 32768 ds 2 0.5 2 8
gpt-4.1-mini 1047576 32768 ds 0.4 0.1 0.4 1.6
gpt-4.1-nano 1047576 32768 ds 0.1 0.025 0.1 0.4
gpt-4o 128000 16384 ds 2.5 1.25 2.5 10
gpt-4o-2024-05-13 128000 4096 d 5 5 5 15
gpt-4o-audio-preview-2024-12-17 128000 16384 - 2.5 2.5 2.5 10
gpt-4o-audio-preview-2025-06-03 128000 16384 - 2.5 2.5 2.5 10
gpt-4o-mini 128000 16384 ds 0.15 0.075 0.15 0.6
gpt-4o-mini-audio-preview-2024-12-17 128000 16384 - 0.15 0.15 0.15 0.6
gpt-4o-mini-search-preview 128000 16384 ds 0.15 0.075 0.15 0.6
gpt-4o-search-preview 128000 16384 ds 2.5 1.25 2.5 10
gpt-5 272000 128000 ds 1.25 0.125 1.25 10
gpt-5-chat 128000 16384 ds 1.25 0.125 1.25 10
gpt-5-chat-latest 128000 16384 ds 1.25 0.125 1.25 10
gpt-5-codex 272000 128000 ds 1.25 0.125 1.25 10
gpt-5-mini 272000 128000 ds 0.25 0.025 0.25 2
gpt-5-nano 272000 128000 ds 0.05 0.005 0.05 0.4
gpt-5-pro 400000 272000 ds 15 15 15 120
gpt-5-search-api 272000 128000 ds 1.25 0.125 1.25 10
gpt-5.1 272000 128000 ds 1.25 0.125 1.25 10
gpt-5.1-chat-latest 128000 16384 ds 1.25 0.125 1.25 10
gpt-5.1-codex 400000 128000 ds 1.25 0.125 1.25 10
gpt-5.1-codex-max 400000 128000 ds 1.25 0.125 1.25 10
gpt-5.1-codex-mini 400000 128000 ds 0.25 0.025 0.25 2
gpt-5.2 272000 128000 ds 1.75 0.175 1.75 14
gpt-5.2-chat-latest 128000 16384 ds 1.75 0.175 1.75 14
gpt-5.2-codex 272000 128000 ds 1.75 0.175 1.75 14
gpt-5.2-pro 272000 128000 ds 21 21 21 168
gpt-5.3-chat-latest 128000 16384 ds 1.75 0.175 1.75 14
gpt-5.3-codex 272000 128000 ds 1.75 0.175 1.75 14
gpt-5.4 1050000 128000 ds 2.5 0.25 2.5 15 272000 5 0.5 5 22.5
gpt-5.4-mini 272000 128000 ds 0.75 0.075 0.75 4.5
gpt-5.4-nano 272000 128000 ds 0.2 0.02 0.2 1.25
gpt-5.4-pro 1050000 128000 d 30 30 30 180 272000 60 60 60 270
gpt-5.5 1050000 128000 ds 5 0.5 5 30 272000 10 1 10 45
gpt-5.5-cyber - - - 12.5 1.25 12.5 75
gpt-5.5-cyber-preview - - - 12.5 1.25 12.5 75
gpt-5.5-pro 1050000 128000 d 30 30 30 180 272000 60 60 60 270
gpt-5.6 922000 128000 ds 4 0.4 5 20 272000 8 0.8 10 30
gpt-5.6-cyber 400000 128000 ds 12.5 1.25 15.625 75 272000 25 2.5 31.25 112.5
gpt-5.6-luna 922000 128000 ds 0.2 0.02 0.25 1.2 272000 0.4 0.04 0.5 1.8
gpt-5.6-sol 922000 128000 ds 4 0.4 5 20 272000 8 0.8 10 30
gpt-5.6-terra 922000 128000 ds 2 0.2 2.5 12 272000 4 0.4 5 18
gpt-6-astra 922000 128000 ds 10 1 12.5 50 272000 20 2 25 75
gpt-6-luna 922000 128000 ds 0.1 0.01 0.125 0.5 272000 0.2 0.02 0.25 0.75
gpt-6-sol 922000 128000 ds 2 0.2 2.5 10 272000 4 0.4 5 15
gpt-6.1-sol 922000 128000 ds 2 0.1 2.5 10 272000 4 0.2 5 15
gpt-audio 128000 16384 - 2.5 2.5 2.5 10
gpt-audio-1.5 128000 16384 - 2.5 2.5 2.5 10
gpt-audio-mini 128000 16384 - 0.6 0.6 0.6 2.4
gpt-daybreak-blue-latest 922000 128000 ds 4 0.4 5 20 272000 8 0.8 10 30
gpt-daybreak-red-latest 400000 128000 ds 12.5 1.25 15.625 75 272000 25 2.5 31.25 112.5
gpt-rosalind-discovery - - - 5 0.5 5 25
gpt-rosalind-research - - - 5 0.5 5 25
o1 200000 100000 ds 15 7.5 15 60
o1-pro 200000 100000 ds 150 150 150 600
o3 200000 100000 ds 2 0.5 2 8
o3-deep-research 200000 100000 d 10 2.5 10 40
o3-mini 200000 100000 s 1.1 0.55 1.1 4.4
o3-pro 200000 100000 ds 20 20 20 80
o4-mini 200000 100000 ds 1.1 0.275 1.1 4.4
o4-mini-deep-research 200000 100000 d 2 0.5 2 8
[gemini]
deep-research-max-preview-04-2026 1048576 65536 - 2 2 2 12
deep-research-preview-04-2026 1048576 65536 - 2 2 2 12
deep-research-pro-preview-12-2025 1048576 65536 ds 2 2 2 12
gemini-2.5-computer-use-preview-10-2025 128000 64000 - 1.25 1.25 1.25 10 200000 2.5 2.5 2.5 15
gemini-2.5-flash 1048576 65536 ds 0.3 0.03 0.3 2.5
gemini-2.5-flash-lite 1048576 65536 ds 0.1 0.01 0.1 0.4
gemini-2.5-pro 1048576 65536 ds 1.25 0.125 1.25 10 200000 2.5 0.25 2.5 15
gemini-2.5-pro-preview-tts 8192 16384 - 1 0.125 1 20
gemini-3-flash-preview 1048576 65536 ds 0.5 0.05 0.5 3
gemini-3.1-flash-lite 1048576 65536 ds 0.25 0.025 0.25 1.5
gemini-3.1-flash-lite-preview 1048576 65536 ds 0.25 0.025 0.25 1.5
gemini-3.1-pro-preview 1048576 65536 ds 2 0.2 2 12 200000 4 0.4 4 18
gemini-3.1-pro-preview-customtools 1048576 65536 ds 2 0.2 2 12 200000 4 0.4 4 18
gemini-3.5-flash 1048576 65536 ds 1.5 0.15 1.5 9
gemini-3.5-flash-lite 1048576 65536 ds 0.3 0.03 0.3 2.5
gemini-3.6-flash 1048576 65536 ds 0.75 0.075 0.75 3.75
gemini-3.7-flash 1048576 65536 ds 0.75 0.075 0.75 3.75
gemini-3.8-flash 1048576 65536 ds 0.75 0.075 0.75 3.75
gemini-4-argon 1048576 1048576 ds 2 0.1 2 10
gemini-exp-1114 1048576 8192 s
gemini-exp-1206 2097152 8192 s
gemini-flash-latest 1048576 65536 ds 0.75 0.075 0.75 3.75
gemini-flash-lite-latest 1048576 65536 ds 0.3 0.03 0.3 2.5
gemini-gemma-2-27b-it 8192 8192 - 0.35 0.35 0.35 1.05
gemini-gemma-2-9b-it 8192 8192 - 0.35 0.35 0.35 1.05
gemini-omni-1.1-flash 1048576 65536 - 1.5 1.5 1.5 9
gemini-omni-flash-preview 131072 65536 - 1.5 1.5 1.5 9
gemini-pro-latest 1048576 65536 ds 2 0.2 2 12 200000 4 0.4 4 18
gemini-robotics-er-2-preview 131072 65536 ds 1 0.1 1 5
gemini-robotics-er-2-streaming-preview 131072 65536 - 1 1 1 5
gemma-3-27b-it 131072 8192 s
gemma-4-26b-a4b-it 262144 32768 s
gemma-4-31b-it 262144 32768 s
learnlm-1.5-pro-experimental 32767 8192 s
lyria-3-clip-preview 131072 8192 -
lyria-3-pro-preview 131072 8192 -
lyria-3.5 131072 65536 -
lyria-3.5-clip-preview 131072 8192 -
lyria-3.5-pro-preview 131072 8192 -
lyria-realtime-exp 1048576 65536 -
[azure]
Codestral-2501 256000 4096 - 0.3 0.3 0.3 0.9
Cohere-command-a-plus-05-2026 128000 64000 - 0.8 0.8 0.8 3.2
DeepSeek-V4-Flash-0731 1000000 384000 - 0.44 0.014 0.44 1.32
FW-DeepSeek-V3.2 163840 163840 - 0.62 0.31 0.62 1.85
FW-DeepSeek-V4-Flash 1000000 384000 - 0.15 0.03 0.15 0.31
FW-DeepSeek-V4-Pro 1000000 384000 - 1.925 0.165 1.925 3.828
FW-DeepSeek-V4.1-Flash 1000000 384000 - 0.375 0.008 0.375 1.5
FW-GLM-5 200000 128000 - 1.1 0.22 1.1 3.52
FW-GLM-5.1 202800 131072 - 1.54 0.286 1.54 4.84
FW-GLM-5.2 1048576 131072 - 1.54 0.15 1.54 4.84
FW-GLM-5.2-Fast 1048576 131072 - 2.31 0.231 2.31 7.26
FW-GLM-5.3 1048576 131072 - 1.75 0.325 1.75 5.5
FW-GLM-5.3-Flash 1048576 131072 - 0.188 0.038 0.188 0.625
FW-GPT-OSS-120B 131072 131072 s 0.165 0.082 0.165 0.66
FW-Inkling 1048576 1048576 - 1.1 0.19 1.1 4.46
FW-Kimi-K2.5 262144 262144 - 0.66 0.11 0.66 3.3
FW-Kimi-K2.6 262144 262144 - 1.045 0.176 1.045 4.4
FW-Kimi-K2.7-Code 262144 262144 - 1.05 0.21 1.05 4.4
FW-Kimi-K3 1048576 131072 - 3 0.3 3 15
FW-MiniMax-M2.5 1000000 1000000 - 0.33 0.033 0.33 1.32
FW-MiniMax-M3 512000 512000 - 0.33 0.066 0.33 1.32
FW-Nemotron-3-Ultra-NVFP4 262144 262144 - 0.66 0.13 0.66 2.64
FW-Nemotron-Lightning-3.5-30B-A3B 262144 - - 0.06 0.01 0.06 0.22
Llama-3.3-70B-Instruct 128000 8192 - 0.71 0.71 0.71 0.71
Llama-4-Maverick-17B-128E-Instruct-FP8 1000000 1000000 - 0.25 0.25 0.25 1
Llama-4-Scout-17B-16E-Instruct 10000000 16384 - 0.2 0.2 0.2 0.78
MAI-Cyber-1-Flash 256000 64000 - 0.6 0.06 0.6 3.5
MAI-DS-R1 128000 8192 - 1.35 1.35 1.35 5.4
MAI-Thinking-1 256000 64000 - 2 0.2 2 8
Meta-Llama-3-70B-Instruct 8192 2048 - 1.1 1.1 1.1 0.37
Meta-Llama-3.1-70B-Instruct 128000 2048 - 2.68 2.68 2.68 3.54
Phi-3-medium-128k-instruct 128000 4096 - 0.17 0.17 0.17 0.68
Phi-3-medium-4k-instruct 4096 4096 - 0.17 0.17 0.17 0.68
Phi-3-mini-128k-instruct 128000 4096 - 0.13 0.13 0.13 0.52
Phi-3-mini-4k-instruct 4096 4096 - 0.13 0.13 0.13 0.52
Phi-3-small-128k-instruct 128000 4096 - 0.15 0.15 0.15 0.6
Phi-3-small-8k-instruct 8192 4096 - 0.15 0.15 0.15 0.6
Phi-3.5-MoE-instruct 128000 4096 - 0.16 0.16 0.16 0.64
Phi-3.5-mini-instruct 128000 4096 - 0.13 0.13 0.13 0.52
Phi-3.5-vision-instruct 128000 4096 - 0.13 0.13 0.13 0.52
Phi-4 16384 16384 - 0.125 0.125 0.125 0.5
Phi-4-mini-instruct 131072 4096 - 0.075 0.075 0.075 0.3
Phi-4-mini-reasoning 131072 4096 - 0.075 0.075 0.075 0.3
Phi-4-multimodal-instruct 131072 4096 - 0.08 0.08 0.08 0.32
Phi-4-reasoning 32768 4096 - 0.125 0.125 0.125 0.5
chat-latest 272000 128000 ds 5 0.5 5 30
claude-fable-5 1000000 128000 ds 10 1 12.5 50
claude-fable-5-1 1000000 128000 ds 10 0.25 12.5 50
claude-haiku-4-5 200000 64000 ds 1 0.1 1.25 5
claude-haiku-5-5 1000000 128000 ds 0.1 0.01 0.125 0.5 100000 0.5 0.05 0.625 2.5
claude-opus-4-5 200000 64000 ds 5 0.5 6.25 25
claude-opus-4-6 1000000 128000 ds 5 0.5 6.25 25
claude-opus-4-7 1000000 128000 ds 5 0.5 6.25 25
claude-opus-4-8 1000000 128000 ds 5 0.5 6.25 25
claude-opus-5 1000000 128000 ds 5 0.5 6.25 25
claude-opus-5-5 1000000 128000 ds 4 0.2 5 20
claude-opus-5-5-fast 1000000 128000 ds 8 0.4 10 40
claude-sonnet-4-5 200000 64000 ds 3 0.3 3.75 15
claude-sonnet-4-6 1000000 128000 ds 3 0.3 3.75 15
claude-sonnet-5 1000000 128000 ds 2 0.2 2.5 10
claude-sonnet-5-5 1000000 128000 ds 2 0.2 2.5 10
codex-mini 200000 100000 ds 1.5 0.375 1.5 6
cohere-command-a 131072 8182 - 2.5 2.5 2.5 10
command-r-plus 128000 4096 - 3 3 3 15
computer-use-preview 8192 1024 s 3 3 3 12
deepseek-r1 - - - 1.35 1.35 1.35 5.4
deepseek-v3 128000 8192 - 1.14 1.14 1.14 4.56
deepseek-v3-0324 - - - 1.14 1.14 1.14 4.56
deepseek-v3.1 - - - 1.23 1.23 1.23 4.94
deepseek-v3.2 128000 128000 - 0.58 0.58 0.58 1.68
deepseek-v3.2-speciale 128000 128000 - 0.58 0.58 0.58 1.68
deepseek-v4-flash 1000000 384000 - 0.19 0.028 0.19 0.51
deepseek-v4-pro 1000000 384000 - 1.74 0.145 1.74 3.48
deepseek-v4.1-flash 1000000 384000 - 0.3 0.006 0.3 1.2
gpt-3.5-turbo 4097 4096 - 0.5 0.5 0.5 1.5
gpt-35-turbo 4097 4096 - 0.5 0.5 0.5 1.5
gpt-35-turbo-16k 16385 4096 - 3 3 3 4
gpt-35-turbo-16k-0613 16385 4096 - 3 3 3 4
gpt-4 8192 4096 - 30 30 30 60
gpt-4-0125-preview 128000 4096 - 10 10 10 30
gpt-4-0613 8192 4096 - 30 30 30 60
gpt-4-1106-preview 128000 4096 - 10 10 10 30
gpt-4-32k 32768 4096 - 60 60 60 120
gpt-4-32k-0613 32768 4096 - 60 60 60 120
gpt-4-turbo 128000 4096 - 11 11 11 33
gpt-4-turbo-vision-preview 128000 4096 - 11 11 11 33
gpt-4.1 1047576 32768 s 2 0.5 2 8
gpt-4.1-mini 1047576 32768 s 0.4 0.1 0.4 1.6
gpt-4.1-nano 1047576 32768 s 0.1 0.025 0.1 0.4
gpt-4.5-preview 128000 16384 s 75 37.5 75 150
gpt-4o 128000 16384 s 2.5 1.25 2.5 10
gpt-4o-2024-05-13 128000 4096 - 5 5 5 15
gpt-4o-audio-preview-2024-12-17 128000 16384 - 2.5 2.5 2.5 10
gpt-4o-mini 128000 16384 s 0.15 0.075 0.15 0.6
gpt-4o-mini-audio-preview-2024-12-17 128000 16384 - 0.15 0.15 0.15 0.6
gpt-5 272000 128000 ds 1.25 0.125 1.25 10
gpt-5-chat 128000 16384 - 1.25 0.125 1.25 10
gpt-5-codex 272000 128000 ds 1.25 0.125 1.25 10
gpt-5-mini 272000 128000 ds 0.25 0.025 0.25 2
gpt-5-nano 272000 128000 ds 0.05 0.005 0.05 0.4
gpt-5-pro 272000 128000 ds 15 15 15 120
gpt-5.1 272000 128000 ds 1.25 0.125 1.25 10
gpt-5.1-chat 111616 16384 s 1.25 0.125 1.25 10
gpt-5.1-codex 272000 128000 ds 1.25 0.125 1.25 10
gpt-5.1-codex-max 272000 128000 ds 1.25 0.125 1.25 10
gpt-5.1-codex-mini 272000 128000 ds 0.25 0.025 0.25 2
gpt-5.2 272000 128000 ds 1.75 0.175 1.75 14
gpt-5.2-chat 111616 16384 s 1.75 0.175 1.75 14
gpt-5.2-codex 272000 128000 ds 1.75 0.175 1.75 14
gpt-5.2-pro 272000 128000 ds 21 21 21 168
gpt-5.3-chat 111616 16384 s 1.75 0.175 1.75 14
gpt-5.3-codex 272000 128000 ds 1.75 0.175 1.75 14
gpt-5.4 922000 128000 ds 2.5 0.25 2.5 15 272000 5 0.5 5 22.5
gpt-5.4-mini 272000 128000 ds 0.75 0.075 0.75 4.5
gpt-5.4-nano 272000 128000 ds 0.2 0.02 0.2 1.25
gpt-5.4-pro 922000 128000 d 30 3 30 180 272000 60 6 60 270
gpt-5.5 922000 128000 ds 5 0.5 5 30 272000 10 1 10 45
gpt-5.5-pro 1050000 128000 d 30 3 30 180 272000 60 6 60 270
gpt-5.6 922000 128000 ds 4 0.4 5 20 272000 8 0.8 10 30
gpt-5.6-luna 922000 128000 ds 0.2 0.02 0.25 1.2 272000 0.4 0.04 0.5 1.8
gpt-5.6-sol 922000 128000 ds 4 0.4 5 20 272000 8 0.8 10 30
gpt-5.6-terra 922000 128000 ds 2 0.2 2.5 12 272000 4 0.4 5 18
gpt-6-astra 922000 128000 ds 10 1 12.5 50 272000 20 2 25 75
gpt-6-luna 922000 128000 ds 0.1 0.01 0.125 0.5 272000 0.2 0.02 0.25 0.75
gpt-6-sol 922000 128000 ds 2 0.2 2.5 10 272000 4 0.4 5 15
gpt-6.1-sol 922000 128000 ds 2 0.1 2.5 10 272000 4 0.2 5 15
gpt-audio 128000 16384 - 2.5 2.5 2.5 10
gpt-audio-1.5 128000 16384 - 2.5 2.5 2.5 10
gpt-audio-mini 128000 16384 - 0.6 0.6 0.6 2.4
gpt-chat-latest 272000 128000 ds 5 0.5 5 30
gpt-oss-120b 131072 131072 s 0.15 0.15 0.15 0.6
grok-3 - - - 3 3 3 15
grok-3-mini - - - 0.25 0.25 0.25 1.27
grok-4 262000 8192 s 3 3 3 15
grok-4-1-fast-non-reasoning 128000 128000 s 0.2 0.2 0.2 0.5
grok-4-1-fast-reasoning 128000 128000 s 0.2 0.2 0.2 0.5
grok-4-20-non-reasoning 262000 8192 s 1.25 1.25 1.25 2.5
grok-4-20-reasoning 262000 8192 s 1.25 1.25 1.25 2.5
grok-4-fast-non-reasoning - - - 0.2 0.2 0.2 0.5
grok-4-fast-reasoning - - - 0.2 0.2 0.2 0.5
grok-4.3 200000 8192 s 1.25 0.2 1.25 2.5 200000 2.5 0.4 2.5 5
grok-4.6 200000 128000 s 2 0.5 2 6 200000 4 1 4 12
grok-4.7 500000 500000 s 2 0.5 2 6 200000 4 1 4 12
grok-code-fast-1 256000 8192 s 0.2 0.2 0.2 1.5
jais-30b-chat 8192 8192 - 3200 3200 3200 9710
jamba-instruct 70000 4096 - 0.5 0.5 0.5 0.7
kimi-k2-thinking 262144 262144 - 0.6 0.6 0.6 2.5
kimi-k2.5 262144 262144 - 0.6 0.1 0.6 3
kimi-k2.6 262144 262144 - 0.95 0.16 0.95 4
kimi-k2.7-code 262144 262144 - 0.95 0.19 0.95 4
ministral-3b 128000 4096 - 0.04 0.04 0.04 0.04
mistral-large 32000 8191 - 4 4 4 12
mistral-large-2402 32000 - - 8 8 8 24
mistral-large-2407 128000 4096 - 2 2 2 6
mistral-large-3 256000 8191 - 0.5 0.5 0.5 1.5
mistral-large-latest 32000 - - 8 8 8 24
mistral-medium-2505 131072 8191 - 0.4 0.4 0.4 2
mistral-medium-3-5 128000 128000 s 1.5 1.5 1.5 7.5
mistral-nemo 131072 4096 - 0.15 0.15 0.15 0.15
mistral-small 32000 8191 - 1 1 1 3
mistral-small-2503 128000 128000 - 0.1 0.1 0.1 0.3
model-router 200000 32768 -
model_router 200000 32768 -
o1 200000 100000 - 15 7.5 15 60
o1-mini 128000 65536 - 1.1 0.55 1.1 4.4
o3 200000 100000 s 2 0.5 2 8
o3-deep-research 200000 100000 ds 10 2.5 10 40
o3-mini 200000 100000 s 1.1 0.55 1.1 4.4
o3-mini-2025-01-31 200000 100000 - 1.1 0.55 1.1 4.4
o3-pro 200000 100000 s 20 20 20 80
o4-mini 200000 100000 s 1.1 0.275 1.1 4.4
[bedrock]
ai21.j2-mid-v1 8191 8191 - 12.5 12.5 12.5 12.5
ai21.j2-ultra-v1 8191 8191 - 18.8 18.8 18.8 18.8
ai21.jamba-1-5-large-v1:0 256000 4096 - 2 2 2 8
ai21.jamba-1-5-mini-v1:0 256000 4096 - 0.2 0.2 0.2 0.4
ai21.jamba-instruct-v1:0 70000 4096 - 0.5 0.5 0.5 0.7
amazon.nova-2-lite-v1:0 1000000 64000 ds 0.3 0.075 0.3 2.5
amazon.nova-2-pro-preview-20251202-v1:0 1000000 64000 ds 1.25 0.3125 1.25 10
amazon.nova-lite-v1:0 300000 10000 ds 0.06 0.015 0.06 0.24
amazon.nova-micro-v1:0 128000 10000 s 0.035 0.00875 0.035 0.14
amazon.nova-premier-v1:0 1000000 10000 ds 2.5 0.625 2.5 12.5
amazon.nova-pro-v1:0 300000 10000 ds 0.8 0.2 0.8 3.2
amazon.titan-text-express-v1 42000 8000 - 0.2 0.2 0.2 0.6
amazon.titan-text-lite-v1 42000 4000 - 0.15 0.15 0.15 0.2
amazon.titan-text-premier-v1:0 42000 32000 - 0.5 0.5 0.5 1.5
anthropic.claude-3-5-haiku-20241022-v1:0 200000 8192 ds 0.8 0.08 1 4
anthropic.claude-3-5-sonnet-20240620-v1:0 200000 4096 ds 3 0.3 3.75 15
anthropic.claude-3-5-sonnet-20241022-v2:0 200000 8192 ds 3 0.3 3.75 15
anthropic.claude-3-7-sonnet-20240620-v1:0 200000 8192 ds 3.6 0.36 4.5 18
anthropic.claude-3-7-sonnet-20250219-v1:0 200000 8192 ds 3 0.3 3.75 15
anthropic.claude-3-opus-20240229-v1:0 200000 4096 s 15 1.5 18.75 75
anthropic.claude-fable-5 1000000 128000 ds 10 1 12.5 50
anthropic.claude-fable-5-1 1000000 128000 ds 10 0.25 12.5 50
anthropic.claude-haiku-4-5-20251001-v1:0 200000 64000 ds 1 0.1 1.25 5
anthropic.claude-haiku-4-5@20251001 200000 64000 ds 1 0.1 1.25 5
anthropic.claude-haiku-5-5 1000000 128000 ds 0.1 0.01 0.125 0.5 100000 0.5 0.05 0.625 2.5
anthropic.claude-instant-v1 100000 8191 - 0.8 0.8 0.8 2.4
anthropic.claude-mythos-5-1 1000000 128000 ds 10 0.25 12.5 50
anthropic.claude-mythos-preview 1000000 128000 - 27.5 2.75 34.375 137.5
anthropic.claude-opus-4-1-20250805-v1:0 200000 32000 ds 15 1.5 18.75 75
anthropic.claude-opus-4-20250514-v1:0 200000 32000 ds 15 1.5 18.75 75
anthropic.claude-opus-4-5-20251101-v1:0 200000 64000 ds 5 0.5 6.25 25
anthropic.claude-opus-4-6-v1 1000000 128000 ds 5 0.5 6.25 25
anthropic.claude-opus-4-7 1000000 128000 ds 5 0.5 6.25 25
anthropic.claude-opus-4-8 1000000 128000 ds 5 0.5 6.25 25
anthropic.claude-opus-5 1000000 128000 ds 5 0.5 6.25 25
anthropic.claude-opus-5-5 1000000 128000 ds 4 0.2 5 20
anthropic.claude-sonnet-4-20250514-v1:0 200000 64000 ds 3 0.3 3.75 15 200000 6 0.6 7.5 22.5
anthropic.claude-sonnet-4-5-20250929-v1:0 200000 64000 ds 3 0.3 3.75 15 200000 6 0.6 7.5 22.5
anthropic.claude-sonnet-4-6 1000000 64000 ds 3 0.3 3.75 15
anthropic.claude-sonnet-5 1000000 128000 ds 2 0.2 2.5 10
anthropic.claude-sonnet-5-5 1000000 128000 ds 2 0.1 2.5 10
anthropic.claude-v1 100000 8191 - 8 8 8 24
anthropic.claude-v2:1 100000 8191 - 8 8 8 24
apac.amazon.nova-2-lite-v1:0 1000000 64000 ds 0.396 0.099 0.396 3.311
apac.amazon.nova-2-pro-preview-20251202-v1:0 1000000 64000 ds 1.375 0.34375 1.375 11
apac.amazon.nova-lite-v1:0 300000 10000 ds 0.063 0.01575 0.063 0.252
apac.amazon.nova-micro-v1:0 128000 10000 s 0.037 0.00925 0.037 0.148
apac.amazon.nova-pro-v1:0 300000 10000 ds 0.84 0.21 0.84 3.36
apac.anthropic.claude-fable-5 1000000 128000 ds 11 1.1 13.75 55
apac.anthropic.claude-haiku-4-5-20251001-v1:0 200000 64000 ds 1.1 0.11 1.375 5.5
apac.anthropic.claude-haiku-5-5 1000000 128000 ds 0.11 0.011 0.1375 0.55 100000 0.55 0.055 0.6875 2.75
apac.anthropic.claude-mythos-preview 1000000 128000 - 27.5 2.75 34.375 137.5
apac.anthropic.claude-opus-4-7 1000000 128000 ds 5.5 0.55 6.875 27.5
apac.anthropic.claude-opus-4-8 1000000 128000 ds 5.5 0.55 6.875 27.5
apac.anthropic.claude-opus-5 1000000 128000 ds 5.5 0.55 6.875 27.5
apac.anthropic.claude-opus-5-5 1000000 128000 ds 4.4 0.22 5.5 22
apac.anthropic.claude-sonnet-4-20250514-v1:0 200000 64000 ds 3 0.3 3.75 15 200000 6 0.6 7.5 22.5
apac.anthropic.claude-sonnet-4-6 1000000 64000 ds 3.3 0.33 4.125 16.5
apac.anthropic.claude-sonnet-5 1000000 128000 ds 2.2 0.22 2.75 11
apac.anthropic.claude-sonnet-5-5 1000000 128000 ds 2.2 0.11 2.75 11
au.anthropic.claude-fable-5 1000000 128000 ds 11 1.1 13.75 55
au.anthropic.claude-haiku-4-5-20251001-v1:0 200000 64000 ds 1.1 0.11 1.375 5.5
au.anthropic.claude-haiku-5-5 1000000 128000 ds 0.11 0.011 0.1375 0.55 100000 0.55 0.055 0.6875 2.75
au.anthropic.claude-mythos-preview 1000000 128000 - 27.5 2.75 34.375 137.5
au.anthropic.claude-opus-4-6-v1 1000000 128000 ds 5.5 0.55 6.875 27.5
au.anthropic.claude-opus-4-7 1000000 128000 ds 5.5 0.55 6.875 27.5
au.anthropic.claude-opus-4-8 1000000 128000 ds 5.5 0.55 6.875 27.5
au.anthropic.claude-opus-5 1000000 128000 ds 5.5 0.55 6.875 27.5
au.anthropic.claude-opus-5-5 1000000 128000 ds 4.4 0.22 5.5 22
au.anthropic.claude-sonnet-4-5-20250929-v1:0 200000 64000 ds 3.3 0.33 4.125 16.5 200000 6.6 0.66 8.25 24.75
au.anthropic.claude-sonnet-4-6 1000000 64000 ds 3.3 0.33 4.125 16.5
au.anthropic.claude-sonnet-5 1000000 128000 ds 2.2 0.22 2.75 11
au.anthropic.claude-sonnet-5-5 1000000 128000 ds 2.2 0.11 2.75 11
claude-sonnet-4-5-20250929-v1:0 200000 64000 ds 3 0.3 3.75 15 200000 6 0.6 7.5 22.5
cohere.command-light-text-v14 4096 4096 - 0.3 0.3 0.3 0.6
cohere.command-text-v14 4096 4096 - 1 1 1 2
deepseek.r1-v1:0 128000 8192 - 1.35 1.35 1.35 5.4
deepseek.v3-v1:0 128000 8000 s 0.58 0.58 0.58 1.68
deepseek.v3.2 164000 8000 s 0.62 0.62 0.62 1.85
eu.amazon.nova-2-lite-v1:0 1000000 64000 ds 0.429 0.10725 0.429 3.597
eu.amazon.nova-2-pro-preview-20251202-v1:0 1000000 64000 ds 1.375 0.34375 1.375 11
eu.amazon.nova-lite-v1:0 300000 10000 ds 0.078 0.0195 0.078 0.312
eu.amazon.nova-micro-v1:0 128000 10000 s 0.046 0.0115 0.046 0.184
eu.amazon.nova-pro-v1:0 300000 10000 ds 1.05 0.2625 1.05 4.2
eu.anthropic.claude-3-5-haiku-20241022-v1:0 200000 8192 ds 0.8 0.08 1 4
eu.anthropic.claude-3-5-sonnet-20240620-v1:0 200000 4096 ds 3 0.3 3.75 15
eu.anthropic.claude-3-5-sonnet-20241022-v2:0 200000 8192 ds 3 0.3 3.75 15
eu.anthropic.claude-3-7-sonnet-20250219-v1:0 200000 8192 ds 3 0.3 3.75 15
eu.anthropic.claude-3-opus-20240229-v1:0 200000 4096 s 15 1.5 18.75 75
eu.anthropic.claude-fable-5 1000000 128000 ds 11 1.1 13.75 55
eu.anthropic.claude-fable-5-1 1000000 128000 ds 11 0.275 13.75 55
eu.anthropic.claude-haiku-4-5-20251001-v1:0 200000 64000 ds 1.1 0.11 1.375 5.5
eu.anthropic.claude-haiku-5-5 1000000 128000 ds 0.11 0.011 0.1375 0.55 100000 0.55 0.055 0.6875 2.75
eu.anthropic.claude-opus-4-1-20250805-v1:0 200000 32000 ds 15 1.5 18.75 75
eu.anthropic.claude-opus-4-20250514-v1:0 200000 32000 ds 15 1.5 18.75 75
eu.anthropic.claude-opus-4-5-20251101-v1:0 200000 64000 ds 5.5 0.55 6.875 27.5
eu.anthropic.claude-opus-4-6-v1 1000000 128000 ds 5.5 0.55 6.875 27.5
eu.anthropic.claude-opus-4-7 1000000 128000 ds 5.5 0.55 6.875 27.5
eu.anthropic.claude-opus-4-8 1000000 128000 ds 5.5 0.55 6.875 27.5
eu.anthropic.claude-opus-5 1000000 128000 ds 5.5 0.55 6.875 27.5
eu.anthropic.claude-opus-5-5 1000000 128000 ds 4.4 0.22 5.5 22
eu.anthropic.claude-sonnet-4-20250514-v1:0 200000 64000 ds 3 0.3 3.75 15 200000 6 0.6 7.5 22.5
eu.anthropic.claude-sonnet-4-5-20250929-v1:0 200000 64000 ds 3.3 0.33 4.125 16.5 200000 6.6 0.66 8.25 24.75
eu.anthropic.claude-sonnet-4-6 1000000 64000 ds 3.3 0.33 4.125 16.5
eu.anthropic.claude-sonnet-5 1000000 128000 ds 2.2 0.22 2.75 11
eu.anthropic.claude-sonnet-5-5 1000000 128000 ds 2.2 0.11 2.75 11
eu.deepseek.v3.2 163840 163840 s 0.74 0.74 0.74 2.22
eu.meta.llama3-2-1b-instruct-v1:0 128000 4096 - 0.13 0.13 0.13 0.13
eu.meta.llama3-2-3b-instruct-v1:0 128000 4096 - 0.19 0.19 0.19 0.19
eu.mistral.pixtral-large-2502-v1:0 128000 16384 - 2 2 2 6
global.amazon.nova-2-lite-v1:0 1000000 64000 ds 0.3 0.075 0.3 2.5
global.anthropic.claude-fable-5 1000000 128000 ds 10 1 12.5 50
global.anthropic.claude-fable-5-1 1000000 128000 ds 10 0.25 12.5 50
global.anthropic.claude-haiku-4-5-20251001-v1:0 200000 64000 ds 1 0.1 1.25 5
global.anthropic.claude-haiku-5-5 1000000 128000 ds 0.1 0.01 0.125 0.5 100000 0.5 0.05 0.625 2.5
global.anthropic.claude-mythos-5-1 1000000 128000 ds 10 0.25 12.5 50
global.anthropic.claude-opus-4-5-20251101-v1:0 200000 64000 ds 5 0.5 6.25 25
global.anthropic.claude-opus-4-6-v1 1000000 128000 ds 5 0.5 6.25 25
global.anthropic.claude-opus-4-7 1000000 128000 ds 5 0.5 6.25 25
global.anthropic.claude-opus-4-8 1000000 128000 ds 5 0.5 6.25 25
global.anthropic.claude-opus-5 1000000 128000 ds 5 0.5 6.25 25
global.anthropic.claude-opus-5-5 1000000 128000 ds 4 0.2 5 20
global.anthropic.claude-sonnet-4-20250514-v1:0 200000 64000 ds 3 0.3 3.75 15 200000 6 0.6 7.5 22.5
global.anthropic.claude-sonnet-4-5-20250929-v1:0 200000 64000 ds 3 0.3 3.75 15 200000 6 0.6 7.5 22.5
global.anthropic.claude-sonnet-4-6 1000000 64000 ds 3 0.3 3.75 15
global.anthropic.claude-sonnet-5 1000000 128000 ds 2 0.2 2.5 10
global.anthropic.claude-sonnet-5-5 1000000 128000 ds 2 0.1 2.5 10
global.moonshotai.kimi-k3 1000000 131072 s 3 0.3 3.75 15
global.openai.gpt-5.4 1050000 128000 - 2.5 0.25 2.5 15 272000 5 0.5 5 22.5
global.openai.gpt-5.5 1050000 128000 - 5 0.5 5 30 272000 10 1 10 45
global.openai.gpt-5.6-luna 1050000 128000 - 0.2 0.02 0.25 1.2 272000 0.4 0.04 0.5 1.8
global.openai.gpt-5.6-sol 1050000 128000 - 4 0.4 5 20 272000 8 0.8 10 30
global.openai.gpt-5.6-terra 1050000 128000 - 2 0.2 2.5 12 272000 4 0.4 5 18
global.openai.gpt-6-astra 1050000 128000 - 10 1 12.5 50 272000 20 2 25 75
global.openai.gpt-6-luna 1050000 128000 - 0.1 0.01 0.125 0.5 272000 0.2 0.02 0.25 0.75
global.openai.gpt-6-sol 1050000 128000 - 2 0.2 2.5 10 272000 4 0.4 5 15
global.openai.gpt-6.1-sol 1000000 131072 - 2 0.1 2.5 10 272000 4 0.2 5 15
global.twelvelabs.pegasus-1-5-v1:0 261120 98304 -
global.xai.grok-4.6 500000 500000 - 2 0.5 2 6
global.xai.grok-4.7 524288 524288 - 2 0.5 2 6
global.zai.glm-5.3 1000000 128000 s 1.68 0.312 2.1 5.28
google.gemma-3-12b-it 128000 8000 s 0.09 0.09 0.09 0.29
google.gemma-3-27b-it 128000 8000 s 0.23 0.23 0.23 0.38
google.gemma-3-4b-it 128000 8000 - 0.04 0.04 0.04 0.08
in.moonshotai.kimi-k3 1000000 131072 s 3.3 0.33 4.125 16.5
jp.amazon.nova-2-lite-v1:0 1000000 64000 ds 0.396 0.099 0.396 3.311
jp.anthropic.claude-haiku-4-5-20251001-v1:0 200000 64000 ds 1.1 0.11 1.375 5.5
jp.anthropic.claude-haiku-5-5 1000000 128000 ds 0.11 0.011 0.1375 0.55 100000 0.55 0.055 0.6875 2.75
jp.anthropic.claude-opus-4-7 1000000 128000 ds 5.5 0.55 6.875 27.5
jp.anthropic.claude-opus-4-8 1000000 128000 ds 5.5 0.55 6.875 27.5
jp.anthropic.claude-opus-5 1000000 128000 ds 5.5 0.55 6.875 27.5
jp.anthropic.claude-opus-5-5 1000000 128000 ds 4.4 0.22 5.5 22
jp.anthropic.claude-sonnet-4-5-20250929-v1:0 200000 64000 ds 3.3 0.33 4.125 16.5 200000 6.6 0.66 8.25 24.75
jp.anthropic.claude-sonnet-4-6 1000000 64000 ds 3.3 0.33 4.125 16.5
jp.anthropic.claude-sonnet-5 1000000 128000 ds 2.2 0.22 2.75 11
jp.anthropic.claude-sonnet-5-5 1000000 128000 ds 2.2 0.11 2.75 11
meta.llama2-13b-chat-v1 4096 4096 - 0.75 0.75 0.75 1
meta.llama2-70b-chat-v1 4096 4096 - 1.95 1.95 1.95 2.56
meta.llama3-1-405b-instruct-v1:0 128000 4096 - 2.4 2.4 2.4 2.4
meta.llama3-1-70b-instruct-v1:0 128000 4096 - 0.72 0.72 0.72 0.72
meta.llama3-1-8b-instruct-v1:0 128000 4096 - 0.22 0.22 0.22 0.22
meta.llama3-2-11b-instruct-v1:0 128000 4096 - 0.16 0.16 0.16 0.16
meta.llama3-2-1b-instruct-v1:0 128000 4096 - 0.1 0.1 0.1 0.1
meta.llama3-2-3b-instruct-v1:0 128000 4096 - 0.15 0.15 0.15 0.15
meta.llama3-2-90b-instruct-v1:0 128000 4096 - 0.72 0.72 0.72 0.72
meta.llama3-3-70b-instruct-v1:0 128000 4096 - 0.72 0.72 0.72 0.72
meta.llama3-70b-instruct-v1:0 8192 8192 - 2.65 2.65 2.65 3.5
meta.llama3-8b-instruct-v1:0 8192 8192 - 0.3 0.3 0.3 0.6
meta.llama4-maverick-17b-instruct-v1:0 1000000 8192 - 0.24 0.24 0.24 0.97
meta.llama4-scout-17b-instruct-v1:0 10000000 8192 - 0.17 0.17 0.17 0.66
minimax.minimax-m2 1000000 8000 s 0.3 0.3 0.3 1.2
minimax.minimax-m2.1 196000 8000 s 0.3 0.3 0.3 1.2
minimax.minimax-m2.5 196000 8000 s 0.3 0.3 0.3 1.2
mistral.devstral-2-123b 256000 32000 s 0.4 0.4 0.4 2
mistral.magistral-small-2509 128000 40000 s 0.5 0.5 0.5 1.5
mistral.ministral-3-14b-instruct 128000 8000 s 0.2 0.2 0.2 0.2
mistral.ministral-3-3b-instruct 128000 8000 s 0.1 0.1 0.1 0.1
mistral.ministral-3-8b-instruct 128000 8000 s 0.15 0.15 0.15 0.15
mistral.mistral-7b-instruct-v0:2 32000 4096 - 0.15 0.15 0.15 0.2
mistral.mistral-large-2402-v1:0 32000 4096 - 4 4 4 12
mistral.mistral-large-2407-v1:0 128000 8191 - 2 2 2 6
mistral.mistral-large-3-675b-instruct 256000 32000 s 0.5 0.5 0.5 1.5
mistral.mistral-small-2402-v1:0 32000 4096 - 1 1 1 3
mistral.mixtral-8x7b-instruct-v0:1 32000 4096 - 0.45 0.45 0.45 0.7
mistral.pixtral-large-2502-v1:0 128000 16384 - 2 2 2 6
mistral.voxtral-mini-3b-2507 32768 8192 s 0.04 0.04 0.04 0.04
mistral.voxtral-small-24b-2507 32768 8192 s 0.1 0.1 0.1 0.3
moonshot.kimi-k2-thinking 256000 16000 s 0.6 0.6 0.6 2.5
moonshotai.kimi-k2-thinking 262144 16000 - 0.6 0.6 0.6 2.5
moonshotai.kimi-k2.5 256000 16000 s 0.6 0.6 0.6 3
moonshotai.kimi-k3 1000000 131072 s 3.3 0.33 4.125 16.5
nvidia.nemotron-nano-12b-v2 128000 8000 s 0.2 0.2 0.2 0.6
nvidia.nemotron-nano-3-30b 256000 8000 s 0.06 0.06 0.06 0.24
nvidia.nemotron-nano-9b-v2 128000 8000 s 0.06 0.06 0.06 0.23
nvidia.nemotron-super-3-120b 256000 32000 s 0.15 0.15 0.15 0.65
openai.gpt-6-luna 1050000 128000 - 0.1 0.01 0.125 0.5 272000 0.2 0.02 0.25 0.75
openai.gpt-6-sol 1050000 128000 - 2 0.2 2.5 10 272000 4 0.4 5 15
openai.gpt-oss-120b-1:0 128000 16384 s 0.15 0.15 0.15 0.6
openai.gpt-oss-20b-1:0 128000 16384 s 0.07 0.07 0.07 0.3
openai.gpt-oss-safeguard-120b 128000 16000 s 0.15 0.15 0.15 0.6
openai.gpt-oss-safeguard-20b 128000 16000 s 0.07 0.07 0.07 0.2
qwen.qwen3-235b-a22b-2507-v1:0 262144 8192 s 0.22 0.22 0.22 0.88
qwen.qwen3-32b-v1:0 32768 8192 s 0.15 0.15 0.15 0.6
qwen.qwen3-coder-30b-a3b-v1:0 262144 16384 s 0.15 0.15 0.15 0.6
qwen.qwen3-coder-480b-a35b-v1:0 262144 16384 s 0.45 0.45 0.45 1.8
qwen.qwen3-coder-next 256000 16000 s 0.5 0.5 0.5 1.2
qwen.qwen3-next-80b-a3b 256000 8000 s 0.15 0.15 0.15 1.2
qwen.qwen3-vl-235b-a22b 256000 8000 s 0.53 0.53 0.53 2.66
twelvelabs.pegasus-1-5-v1:0 261120 98304 -
us-gov.anthropic.claude-fable-5-1 1000000 128000 ds 12 0.3 15 60
us-gov.anthropic.claude-haiku-5-5 1000000 128000 ds 0.12 0.012 0.15 0.6 100000 0.6 0.06 0.75 3
us-gov.anthropic.claude-opus-4-8 1000000 128000 ds 6 0.6 7.5 30
us-gov.anthropic.claude-opus-5 1000000 128000 ds 6 0.6 7.5 30
us-gov.anthropic.claude-opus-5-5 1000000 128000 ds 4.8 0.24 6 24
us-gov.anthropic.claude-sonnet-4-5-20250929-v1:0 200000 64000 ds 3.6 0.36 4.5 18 200000 7.2 0.72 9 27
us-gov.anthropic.claude-sonnet-5 1000000 128000 ds 2.4 0.24 3 12
us-gov.anthropic.claude-sonnet-5-5 1000000 128000 ds 2.4 0.12 3 12
us-gov.nvidia.nemotron-nano-12b-v2 128000 8192 s 0.24 0.24 0.24 0.72
us-gov.nvidia.nemotron-nano-3-30b 262144 8192 s 0.072 0.072 0.072 0.288
us-gov.nvidia.nemotron-nano-9b-v2 128000 8192 s 0.072 0.072 0.072 0.276
us-gov.nvidia.nemotron-super-3-120b 256000 32768 s 0.18 0.18 0.18 0.78
us-gov.openai.gpt-oss-120b-1:0 128000 16384 s 0.18 0.18 0.18 0.72
us-gov.openai.gpt-oss-20b-1:0 128000 16384 s 0.084 0.084 0.084 0.36
us-gov.xai.grok-4.6 500000 500000 - 2.64 0.66 2.64 7.92
us.amazon.nova-2-lite-v1:0 1000000 64000 ds 0.33 0.0825 0.33 2.75
us.amazon.nova-2-pro-preview-20251202-v1:0 1000000 64000 ds 1.375 0.34375 1.375 11
us.amazon.nova-lite-v1:0 300000 10000 ds 0.06 0.015 0.06 0.24
us.amazon.nova-micro-v1:0 128000 10000 s 0.035 0.00875 0.035 0.14
us.amazon.nova-pro-v1:0 300000 10000 ds 0.8 0.2 0.8 3.2
us.anthropic.claude-3-5-haiku-20241022-v1:0 200000 8192 ds 0.8 0.08 1 4
us.anthropic.claude-3-5-sonnet-20240620-v1:0 200000 4096 ds 3 0.3 3.75 15
us.anthropic.claude-3-5-sonnet-20241022-v2:0 200000 8192 ds 3 0.3 3.75 15
us.anthropic.claude-3-7-sonnet-20250219-v1:0 200000 8192 ds 3 0.3 3.75 15
us.anthropic.claude-3-opus-20240229-v1:0 200000 4096 s 15 1.5 18.75 75
us.anthropic.claude-fable-5 1000000 128000 ds 11 1.1 13.75 55
us.anthropic.claude-fable-5-1 1000000 128000 ds 11 0.275 13.75 55
us.anthropic.claude-haiku-4-5-20251001-v1:0 200000 64000 ds 1.1 0.11 1.375 5.5
us.anthropic.claude-haiku-5-5 1000000 128000 ds 0.11 0.011 0.1375 0.55 100000 0.55 0.055 0.6875 2.75
us.anthropic.claude-mythos-5 1000000 128000 ds 11 1.1 13.75 55
us.anthropic.claude-mythos-5-1 1000000 128000 ds 11 0.275 13.75 55
us.anthropic.claude-mythos-preview 1000000 128000 - 27.5 2.75 34.375 137.5
us.anthropic.claude-opus-4-1-20250805-v1:0 200000 32000 ds 15 1.5 18.75 75
us.anthropic.claude-opus-4-20250514-v1:0 200000 32000 ds 15 1.5 18.75 75
us.anthropic.claude-opus-4-5-20251101-v1:0 200000 64000 ds 5.5 0.55 6.875 27.5
us.anthropic.claude-opus-4-6-v1 1000000 128000 ds 5.5 0.55 6.875 27.5
us.anthropic.claude-opus-4-7 1000000 128000 ds 5.5 0.55 6.875 27.5
us.anthropic.claude-opus-4-8 1000000 128000 ds 5.5 0.55 6.875 27.5
us.anthropic.claude-opus-5 1000000 128000 ds 5.5 0.55 6.875 27.5
us.anthropic.claude-opus-5-5 1000000 128000 ds 4.4 0.22 5.5 22
us.anthropic.claude-sonnet-4-20250514-v1:0 200000 64000 ds 3 0.3 3.75 15 200000 6 0.6 7.5 22.5
us.anthropic.claude-sonnet-4-5-20250929-v1:0 200000 64000 ds 3.3 0.33 4.125 16.5 200000 6.6 0.66 8.25 24.75
us.anthropic.claude-sonnet-4-6 1000000 64000 ds 3.3 0.33 4.125 16.5
us.anthropic.claude-sonnet-5 1000000 128000 ds 2.2 0.22 2.75 11
us.anthropic.claude-sonnet-5-5 1000000 128000 ds 2.2 0.11 2.75 11
us.deepseek.r1-v1:0 128000 8192 - 1.35 1.35 1.35 5.4
us.deepseek.v3.2 163840 163840 s 0.62 0.62 0.62 1.85
us.meta.llama3-1-405b-instruct-v1:0 128000 4096 - 2.4 2.4 2.4 2.4
us.meta.llama3-1-70b-instruct-v1:0 128000 4096 - 0.72 0.72 0.72 0.72
us.meta.llama3-1-8b-instruct-v1:0 128000 4096 - 0.22 0.22 0.22 0.22
us.meta.llama3-2-11b-instruct-v1:0 128000 4096 - 0.16 0.16 0.16 0.16
us.meta.llama3-2-1b-instruct-v1:0 128000 4096 - 0.1 0.1 0.1 0.1
us.meta.llama3-2-3b-instruct-v1:0 128000 4096 - 0.15 0.15 0.15 0.15
us.meta.llama3-2-90b-instruct-v1:0 128000 4096 - 0.72 0.72 0.72 0.72
us.meta.llama3-3-70b-instruct-v1:0 128000 4096 - 0.72 0.72 0.72 0.72
us.meta.llama4-maverick-17b-instruct-v1:0 1000000 8192 - 0.24 0.24 0.24 0.97
us.meta.llama4-scout-17b-instruct-v1:0 10000000 8192 - 0.17 0.17 0.17 0.66
us.mistral.pixtral-large-2502-v1:0 128000 16384 - 2 2 2 6
us.moonshotai.kimi-k3 1000000 131072 s 3.3 0.33 4.125 16.5
us.openai.gpt-5.4 1050000 128000 - 2.75 0.275 2.75 16.5 272000 5.5 0.55 5.5 24.75
us.openai.gpt-5.5 1050000 128000 - 5.5 0.55 5.5 33 272000 11 1.1 11 49.5
us.openai.gpt-5.6-luna 1050000 128000 - 0.22 0.022 0.275 1.32 272000 0.44 0.044 0.55 1.98
us.openai.gpt-5.6-sol 1050000 128000 - 4.4 0.44 5.5 22 272000 8.8 0.88 11 33
us.openai.gpt-5.6-terra 1050000 128000 - 2.2 0.22 2.75 13.2 272000 4.4 0.44 5.5 19.8
us.openai.gpt-6-astra 1050000 128000 - 11 1.1 13.75 55 272000 22 2.2 27.5 82.5
us.openai.gpt-6-luna 1050000 128000 - 0.11 0.011 0.1375 0.55 272000 0.22 0.022 0.275 0.825
us.openai.gpt-6-sol 1050000 128000 - 2.2 0.22 2.75 11 272000 4.4 0.44 5.5 16.5
us.openai.gpt-6.1-sol 1000000 131072 - 2.2 0.11 2.75 11 272000 4.4 0.22 5.5 16.5
us.twelvelabs.pegasus-1-5-v1:0 261120 98304 -
us.writer.palmyra-x4-v1:0 128000 8192 d 2.5 2.5 2.5 10
us.writer.palmyra-x5-v1:0 128000 8192 d 0.6 0.6 0.6 6
us.xai.grok-4.6 500000 500000 - 2.2 0.55 2.2 6.6
us.xai.grok-4.7 524288 524288 - 2.2 0.55 2.2 6.6
us.zai.glm-5.3 1000000 128000 s 1.848 0.3432 2.31 5.808
writer.palmyra-vision-7b 4096 4096 - 0.15 0.15 0.15 0.6
writer.palmyra-x4-v1:0 128000 8192 d 2.5 2.5 2.5 10
writer.palmyra-x5-v1:0 128000 8192 d 0.6 0.6 0.6 6
zai.glm-4.7 203000 128000 s 0.6 0.6 0.6 2.2
zai.glm-4.7-flash 203000 128000 s 0.07 0.07 0.07 0.4
zai.glm-5 200000 128000 s 1 1 1 3.2
[vertex]
claude-3-5-haiku 200000 8192 d 1 1 1 5
claude-3-5-sonnet 200000 8192 d 3 3 3 15
claude-3-haiku 200000 4096 - 0.25 0.25 0.25 1.25
claude-3-opus 200000 4096 - 15 15 15 75
claude-3-sonnet 200000 4096 - 3 3 3 15
claude-fable-5 1000000 128000 ds 10 1 12.5 50
claude-fable-5-1 1000000 128000 ds 10 0.25 12.5 50
claude-haiku-4-5 200000 64000 ds 1 0.1 1.25 5
claude-haiku-5-5 1000000 128000 ds 0.1 0.01 0.125 0.5 100000 0.5 0.05 0.625 2.5
claude-opus-4-5 200000 64000 ds 5 0.5 6.25 25
claude-opus-4-6 1000000 128000 ds 5 0.5 6.25 25
claude-opus-4-7 1000000 128000 ds 5 0.5 6.25 25
claude-opus-4-8 1000000 128000 ds 5 0.5 6.25 25
claude-opus-5 1000000 128000 ds 5 0.5 6.25 25
claude-opus-5-5 1000000 128000 ds 4 0.2 5 20
claude-sonnet-4-5 200000 64000 ds 3 0.3 3.75 15 200000 6 0.6 7.5 22.5
claude-sonnet-4-6 1000000 64000 ds 3 0.3 3.75 15
claude-sonnet-5 1000000 128000 ds 2 0.2 2.5 10
claude-sonnet-5-5 1000000 128000 ds 2 0.1 2.5 10
codestral-2 128000 128000 - 0.3 0.3 0.3 0.9
codestral-2501 128000 128000 - 0.2 0.2 0.2 0.6
codestral@2405 128000 128000 - 0.2 0.2 0.2 0.6
codestral@latest 128000 128000 - 0.2 0.2 0.2 0.6
deep-research-pro-preview-12-2025 65536 32768 s 2 0.2 2 12
deepseek-ai/deepseek-r1-0528-maas 65336 8192 - 1.35 1.35 1.35 5.4
deepseek-ai/deepseek-v3.1-maas 163840 32768 - 0.6 0.06 0.6 1.7
deepseek-ai/deepseek-v3.2-maas 163840 32768 - 0.56 0.056 0.56 1.68
deepseek-ai/deepseek-v4.1-flash-maas 1048576 1048576 s 0.3 0.03 0.3 1.2
gemini-2.0-flash - - - 0.15 0.15 0.15 0.6
gemini-2.0-flash-lite - - - 0.075 0.075 0.075 0.3
gemini-2.5-computer-use-preview-10-2025 128000 64000 - 1.25 1.25 1.25 10 200000 2.5 2.5 2.5 15
gemini-2.5-flash 1048576 65535 ds 0.3 0.03 0.3 2.5
gemini-2.5-flash-lite 1048576 65535 ds 0.1 0.01 0.1 0.4
gemini-2.5-flash-lite-preview-09-2025 1048576 65535 ds 0.1 0.01 0.1 0.4
gemini-2.5-flash-preview-09-2025 1048576 65535 ds 0.3 0.03 0.3 2.5
gemini-2.5-pro 1048576 65535 ds 1.25 0.125 1.25 10 200000 2.5 0.25 0.25 15
gemini-2.5-pro-preview-tts 1048576 65535 s 1 0.125 1 20
gemini-3-flash-preview 1048576 65535 ds 0.5 0.05 0.5 3
gemini-3-pro-preview 1048576 65535 ds 2 0.2 2 12 200000 4 0.4 0.25 18
gemini-3.1-flash-lite 1048576 65536 ds 0.25 0.025 0.25 1.5
gemini-3.1-flash-lite-preview 1048576 65536 ds 0.25 0.025 0.25 1.5
gemini-3.1-pro-preview 1048576 65536 ds 2 0.2 2 12 200000 4 0.4 0.25 18
gemini-3.1-pro-preview-customtools 1048576 65536 ds 2 0.2 2 12 200000 4 0.4 0.25 18
gemini-3.5-flash 1048576 65535 ds 1.5 0.15 1.5 9
gemini-3.5-flash-lite 1048576 65536 ds 0.3 0.03 0.3 2.5
gemini-3.6-flash 1048576 65536 ds 0.75 0.075 0.75 3.75
gemini-3.7-flash 1048576 65536 ds 0.75 0.075 0.75 3.75
gemini-3.8-flash 1048576 65536 ds 0.75 0.075 0.75 3.75
gemini-3.8-flash-cyber 1048576 65536 ds 1.5 0.15 1.5 7.5
gemini-4-argon 1048576 1048576 ds 2 0.1 2 10
gemini-4-argon-cyber-permissive 1048576 1048576 ds 4 0.2 4 20
gemini-omni-1.1-flash - - - 1.5 1.5 1.5 9
gemini-omni-1.1-flash-preview 57920 57920 - 1.5 1.5 1.5 9
gemini-omni-flash-preview 1048576 65535 - 1.5 1.5 1.5 9
gemini-robotics-er-1.5-preview 1048576 65535 s 0.3 0 0.3 2.5
gemini-robotics-er-2-preview 131072 65536 ds 1 0.1 1 5
gemma-4-26b-a4b-it - - - 0.15 0.015 0.15 0.6
google/gemma-4-26b-a4b-it-maas 262144 128000 - 0.15 0.015 0.15 0.6
medlm-large 8192 1024 -
medlm-medium 32768 8192 -
meta/llama-3.1-405b-instruct-maas 128000 2048 - 5 5 5 16
meta/llama-3.1-70b-instruct-maas 128000 2048 -
meta/llama-3.1-8b-instruct-maas 128000 2048 -
meta/llama-3.2-90b-vision-instruct-maas 128000 2048 -
meta/llama-3.3-70b-instruct-maas 128000 8192 - 0.72 0.72 0.72 0.72
meta/llama-4-maverick-17b-128e-instruct-maas 1000000 1000000 - 0.35 0.35 0.35 1.15
meta/llama-4-maverick-17b-16e-instruct-maas 1000000 1000000 - 0.35 0.35 0.35 1.15
meta/llama-4-scout-17b-128e-instruct-maas 10000000 10000000 - 0.25 0.25 0.25 0.7
meta/llama-4-scout-17b-16e-instruct-maas 10000000 10000000 - 0.25 0.25 0.25 0.7
meta/llama3-405b-instruct-maas 32000 32000 -
meta/llama3-70b-instruct-maas 32000 32000 -
meta/llama3-8b-instruct-maas 32000 32000 -
mistral-large-2411 128000 8191 - 2 2 2 6
mistral-large@2407 128000 8191 - 2 2 2 6
mistral-large@2411-001 128000 8191 - 2 2 2 6
mistral-large@latest 128000 8191 - 2 2 2 6
mistral-medium-3 128000 8191 - 0.4 0.4 0.4 2
mistral-nemo@2407 128000 128000 - 3 3 3 3
mistral-nemo@latest 128000 128000 - 0.15 0.15 0.15 0.15
mistral-small-2503 128000 128000 - 0.1 0.1 0.1 0.3
mistral-small-2503@001 32000 8191 - 0.1 0.1 0.1 0.3
mistralai/codestral-2 128000 128000 - 0.3 0.3 0.3 0.9
mistralai/mistral-medium-3 128000 8191 - 0.4 0.4 0.4 2
openai/gpt-oss-120b-maas 131072 32768 - 0.09 0.09 0.09 0.36
openai/gpt-oss-20b-maas 131072 32768 - 0.07 0.007 0.07 0.25
qwen/qwen3-235b-a22b-instruct-2507-maas 262144 16384 - 0.22 0.22 0.22 0.88
qwen/qwen3-coder-480b-a35b-instruct-maas 262144 32768 - 0.22 0.022 0.22 1.8
qwen/qwen3-next-80b-a3b-instruct-maas 262144 262144 - 0.15 0.15 0.15 1.2
qwen/qwen3-next-80b-a3b-thinking-maas 262144 262144 - 0.15 0.15 0.15 1.2
xai/grok-4.1-fast-non-reasoning 128000 128000 s 0.2 0.05 0.2 0.5
xai/grok-4.1-fast-reasoning 128000 128000 s 0.2 0.05 0.2 0.5
xai/grok-4.20-non-reasoning 2000000 2000000 s 1.25 0.2 1.25 2.5 200000 2.5 0.4 2.5 5
xai/grok-4.20-reasoning 2000000 2000000 s 1.25 0.2 1.25 2.5 200000 2.5 0.4 2.5 5
xai/grok-4.3 200000 200000 s 1.25 0.2 1.25 2.5 200000 2.5 0.4 2.5 5
xai/grok-4.6 524288 524288 s 2 0.5 2 6 200000 4 1 4 12
xai/grok-4.7 524288 524288 s 2 0.5 2 6 200000 4 1 4 12
[mistral]
codestral-2508 128000 128000 s 0.3 0.03 0.3 0.9
codestral-latest 128000 128000 s 0.3 0.03 0.3 0.9
codestral-mamba-latest 256000 256000 - 0.25 0.025 0.25 0.25
devstral-latest 256000 256000 s 0.4 0.04 0.4 2
devstral-medium-latest 256000 256000 s 0.4 0.04 0.4 2
devstral-small-latest 256000 256000 s 0.1 0.01 0.1 0.3
glm-5-2 1048576 131072 s 1.4 0.14 1.4 4.4
labs-leanstral-1-5 262144 131072 s
labs-leanstral-1-5-1 262144 131072 s
magistral-medium-latest 262144 262144 s 1.5 0.15 1.5 7.5
magistral-small-latest 262144 262144 s 0.15 0.015 0.15 0.6
ministral-14b-2512 262144 262144 s 0.2 0.02 0.2 0.2
ministral-14b-latest 262144 262144 s 0.2 0.02 0.2 0.2
ministral-3-14b-2512 262144 262144 s 0.2 0.02 0.2 0.2
ministral-3-3b-2512 131072 131072 s 0.1 0.01 0.1 0.1
ministral-3-8b-2512 262144 262144 s 0.15 0.015 0.15 0.15
ministral-3b-2512 131072 131072 s 0.1 0.01 0.1 0.1
ministral-3b-latest 131072 131072 s 0.1 0.01 0.1 0.1
ministral-8b-2512 262144 262144 s 0.15 0.015 0.15 0.15
ministral-8b-latest 262144 262144 s 0.15 0.015 0.15 0.15
mistral-code-agent-latest 256000 256000 s 0.4 0.04 0.4 2
mistral-code-fim-latest 128000 128000 s 0.3 0.03 0.3 0.9
mistral-code-latest 128000 128000 s 0.3 0.03 0.3 0.9
mistral-large-2512 262144 262144 s 0.5 0.05 0.5 1.5
mistral-large-3 262144 262144 s 0.5 0.05 0.5 1.5
mistral-large-4 1048576 - s 0.68 0.068 0.68 2.09
mistral-large-4-0 1048576 - s 0.68 0.068 0.68 2.09
mistral-large-latest 262144 262144 s 0.5 0.05 0.5 1.5
mistral-medium 262144 262144 s 1.5 0.15 1.5 7.5
mistral-medium-2604 262144 262144 s 1.5 0.15 1.5 7.5
mistral-medium-3 262144 262144 s 1.5 0.15 1.5 7.5
mistral-medium-3-5 262144 262144 s 1.5 0.15 1.5 7.5
mistral-medium-3.5 262144 262144 s 1.5 0.15 1.5 7.5
mistral-medium-latest 262144 262144 s 1.5 0.15 1.5 7.5
mistral-small 32000 8191 s 0.1 0.01 0.1 0.3
mistral-small-2603 262144 262144 s 0.15 0.015 0.15 0.6
mistral-small-latest 262144 262144 s 0.15 0.015 0.15 0.6
mistral-tiny 32000 8191 s 0.25 0.025 0.25 0.25
mistral-vibe-cli-fast 262144 262144 s 0.15 0.015 0.15 0.6
mistral-vibe-cli-latest 262144 262144 s 1.5 0.15 1.5 7.5
mistral-vibe-cli-with-tools 262144 262144 s 1.5 0.15 1.5 7.5
open-mistral-nemo 128000 128000 s 0.3 0.03 0.3 0.3
pixtral-large-latest 128000 128000 s 2 0.2 2 6
voxtral-small-2507 32768 32768 s 0.1 0.01 0.1 0.4
voxtral-small-latest 32768 32768 s 0.1 0.01 0.1 0.4
zai-glm-5 1048576 131072 s 1.4 0.14 1.4 4.4
zai-glm-5-2 1048576 131072 s 1.4 0.14 1.4 4.4
zai-glm-5-3 1048576 131072 s 1.4 0.14 1.4 4.4
zai-glm-latest 1048576 131072 s 1.4 0.14 1.4 4.4
[xai]
grok-4.20 1000000 1000000 s 1.25 0.2 1.25 2.5 200000 2.5 0.4 2.5 5
grok-4.20-0309 1000000 1000000 s 1.25 0.2 1.25 2.5 200000 2.5 0.4 2.5 5
grok-4.20-0309-non-reasoning 1000000 1000000 s 1.25 0.2 1.25 2.5 200000 2.5 0.4 2.5 5
grok-4.20-0309-reasoning 1000000 1000000 s 1.25 0.2 1.25 2.5 200000 2.5 0.4 2.5 5
grok-4.20-beta 1000000 1000000 s 1.25 0.2 1.25 2.5 200000 2.5 0.4 2.5 5
grok-4.20-beta-0309 1000000 1000000 s 1.25 0.2 1.25 2.5 200000 2.5 0.4 2.5 5
grok-4.20-beta-0309-non-reasoning 1000000 1000000 s 1.25 0.2 1.25 2.5 200000 2.5 0.4 2.5 5
grok-4.20-beta-0309-reasoning 1000000 1000000 s 1.25 0.2 1.25 2.5 200000 2.5 0.4 2.5 5
grok-4.20-beta-latest 1000000 1000000 s 1.25 0.2 1.25 2.5 200000 2.5 0.4 2.5 5
grok-4.20-beta-latest-non-reasoning 1000000 1000000 s 1.25 0.2 1.25 2.5 200000 2.5 0.4 2.5 5
grok-4.20-beta-latest-reasoning 1000000 1000000 s 1.25 0.2 1.25 2.5 200000 2.5 0.4 2.5 5
grok-4.20-beta-non-reasoning 1000000 1000000 s 1.25 0.2 1.25 2.5 200000 2.5 0.4 2.5 5
grok-4.20-beta-reasoning 1000000 1000000 s 1.25 0.2 1.25 2.5 200000 2.5 0.4 2.5 5
grok-4.20-experimental-beta-0304 1000000 1000000 s 1.25 0.2 1.25 2.5 200000 2.5 0.4 2.5 5
grok-4.20-experimental-beta-0304-non-reasoning 1000000 1000000 s 1.25 0.2 1.25 2.5 200000 2.5 0.4 2.5 5
grok-4.20-experimental-beta-0304-reasoning 1000000 1000000 s 1.25 0.2 1.25 2.5 200000 2.5 0.4 2.5 5
grok-4.20-experimental-beta-latest 1000000 1000000 s 1.25 0.2 1.25 2.5 200000 2.5 0.4 2.5 5
grok-4.20-experimental-beta-non-reasoning-latest 1000000 1000000 s 1.25 0.2 1.25 2.5 200000 2.5 0.4 2.5 5
grok-4.20-experimental-beta-reasoning-latest 1000000 1000000 s 1.25 0.2 1.25 2.5 200000 2.5 0.4 2.5 5
grok-4.20-multi-agent 1000000 1000000 s 1.25 0.2 1.25 2.5 200000 2.5 0.4 2.5 5
grok-4.20-multi-agent-0309 1000000 1000000 s 1.25 0.2 1.25 2.5 200000 2.5 0.4 2.5 5
grok-4.20-multi-agent-beta-0309 1000000 1000000 s 1.25 0.2 1.25 2.5 200000 2.5 0.4 2.5 5
grok-4.20-multi-agent-beta-latest 1000000 1000000 s 1.25 0.2 1.25 2.5 200000 2.5 0.4 2.5 5
grok-4.20-multi-agent-experimental-beta-0304 1000000 1000000 s 1.25 0.2 1.25 2.5 200000 2.5 0.4 2.5 5
grok-4.20-multi-agent-experimental-beta-latest 1000000 1000000 s 1.25 0.2 1.25 2.5 200000 2.5 0.4 2.5 5
grok-4.20-multi-agent-latest 1000000 1000000 s 1.25 0.2 1.25 2.5 200000 2.5 0.4 2.5 5
grok-4.20-non-reasoning 1000000 1000000 s 1.25 0.2 1.25 2.5 200000 2.5 0.4 2.5 5
grok-4.20-non-reasoning-gv2 1000000 1000000 s 1.25 0.2 1.25 2.5 200000 2.5 0.4 2.5 5
grok-4.20-non-reasoning-latest 1000000 1000000 s 1.25 0.2 1.25 2.5 200000 2.5 0.4 2.5 5
grok-4.20-reasoning 1000000 1000000 s 1.25 0.2 1.25 2.5 200000 2.5 0.4 2.5 5
grok-4.20-reasoning-gv2 1000000 1000000 s 1.25 0.2 1.25 2.5 200000 2.5 0.4 2.5 5
grok-4.20-reasoning-latest 1000000 1000000 s 1.25 0.2 1.25 2.5 200000 2.5 0.4 2.5 5
grok-4.3 1000000 1000000 s 1.25 0.2 1.25 2.5 200000 2.5 0.4 2.5 5
grok-4.3-latest 1000000 1000000 s 1.25 0.2 1.25 2.5 200000 2.5 0.4 2.5 5
grok-4.5 500000 500000 s 2 0.3 2 6 200000 4 0.6 4 12
grok-4.5-latest 500000 500000 s 2 0.3 2 6 200000 4 0.6 4 12
grok-4.6 500000 500000 s 2 0.5 2 6 200000 4 1 4 12
grok-4.7 500000 500000 s 2 0.5 2 6 200000 4 1 4 12
grok-build-0.1 256000 256000 s 1 0.2 1 2 200000 2 0.4 2 4
grok-build-latest 500000 500000 s 2 0.3 2 6 200000 4 0.6 4 12
grok-code-fast 256000 256000 s 1 0.2 1 2 200000 2 0.4 2 4
grok-code-fast-1 256000 256000 s 1 0.2 1 2 200000 2 0.4 2 4
grok-code-fast-1-0825 256000 256000 s 1 0.2 1 2 200000 2 0.4 2 4
[groq]
llama-guard-3-8b 8192 - - 0.2 0.2 0.2 0.2
meta-llama/llama-prompt-guard-2-22m 512 512 - 0.03 0.03 0.03 0.03
meta-llama/llama-prompt-guard-2-86m 512 512 - 0.04 0.04 0.04 0.04
openai/gpt-oss-120b 131072 65536 s 0.15 0.075 0.15 0.6
openai/gpt-oss-20b 131072 65536 s 0.075 0.0375 0.075 0.3
openai/gpt-oss-safeguard-20b 131072 65536 s 0.075 0.037 0.075 0.3
qwen/qwen3.8-27b 131072 16384 s 0.8 0.8 0.8 4
[cohere]
c4ai-aya-expanse-32b 128000 4000 - 0.5 0.5 0.5 1.5
command-a-03-2025 256000 8000 - 2.5 2.5 2.5 10
command-a-plus-05-2026 128000 64000 s
command-r-08-2024 128000 4096 - 0.15 0.15 0.15 0.6
command-r-plus-08-2024 128000 4096 - 2.5 2.5 2.5 10
command-r7b-12-2024 128000 4096 - 0.0375 0.0375 0.0375 0.15
[deepseek]
deepseek-chat 131072 8192 s 0.28 0.028 0.28 0.42
deepseek-coder 128000 4096 - 0.14 0.014 0.14 0.28
deepseek-flash 1000000 393216 s 0.3 0.006 0 1.2
deepseek-r1 65536 8192 - 0.55 0.14 0.55 2.19
deepseek-reasoner 131072 65536 s 0.28 0.028 0.28 0.42
deepseek-v3 65536 8192 - 0.27 0.07 0 1.1
deepseek-v3.2 163840 163840 - 0.28 0.028 0.28 0.4
deepseek-v4-flash 1000000 393216 s 0.3 0.006 0 1.2
deepseek-v4-flash-vision-exp 1000000 393216 s 0.3 0.006 0 1.2
deepseek-v4-pro 1000000 393216 s 1.32 0.044 0 3.96
[togetherai]
MiniMaxAI/MiniMax-M2.7 196608 - - 0.3 0.06 0.3 1.2
MiniMaxAI/MiniMax-M3 524288 - s 0.3 0.06 0.3 1.2
NousResearch/Nous-Hermes-2-Mixtral-8x7B-DPO 32768 - - 0.6 0.6 0.6 0.6
Prism-ML/Ternary-Bonsai-27B 262144 - -
Qwen/QwQ-32B 131072 - - 1.2 1.2 1.2 1.2
Qwen/Qwen2-1.5B-Instruct 32768 - - 0.02 0.02 0.02 0.02
Qwen/Qwen2-72B-Instruct 32768 - - 0.9 0.9 0.9 0.9
Qwen/Qwen2-VL-72B-Instruct 32768 - - 1.2 1.2 1.2 1.2
Qwen/Qwen2.5-14B-Instruct 32768 - - 0.8 0.8 0.8 0.8
Qwen/Qwen2.5-72B-Instruct 32768 - - 1.2 1.2 1.2 1.2
Qwen/Qwen2.5-72B-Instruct-Turbo 131072 - - 1.2 1.2 1.2 1.2
Qwen/Qwen2.5-7B-Instruct-Turbo 32768 - s 0.3 0.3 0.3 0.3
Qwen/Qwen2.5-Coder-32B-Instruct 16384 - - 0.8 0.8 0.8 0.8
Qwen/Qwen2.5-VL-72B-Instruct 32768 - - 1.95 1.95 1.95 8
Qwen/Qwen3-Coder-480B-A35B-Instruct-FP8 262144 - - 2 2 2 2
Qwen/Qwen3-Coder-Next-FP8 262144 - - 0.5 0.5 0.5 1.2
Qwen/Qwen3-Next-80B-A3B-Instruct 262144 - - 0.15 0.15 0.15 1.5
Qwen/Qwen3-Next-80B-A3B-Thinking 262144 - - 0.15 0.15 0.15 1.5
Qwen/Qwen3-VL-32B-Instruct 262144 - - 0.5 0.5 0.5 1.5
Qwen/Qwen3-VL-8B-Instruct 262144 - - 0.18 0.18 0.18 0.68
Qwen/Qwen3.5-397B-A17B 262144 - - 0.6 0.35 0.6 3.6
Qwen/Qwen3.5-9B 262144 - s 0.17 0.17 0.17 0.25
Qwen/Qwen3.6-Plus 1000000 - - 0.5 0.5 0.5 3
Qwen/Qwen3.7-Max 1000000 - - 1.5 0.3 1.5 4.5
Qwen/Qwen3.7-Plus 1000000 - - 0.32 0.32 0.32 1.28
Qwen/Qwen3.8-2.4T-A95B 1010000 - - 2 0.25 2 6
Qwen/Qwen3.8-Flash 1000000 - - 0.15 0.15 0.15 0.47
arcee-ai/trinity-mini 128000 - - 0.045 0.045 0.045 0.15
arize-ai/qwen-2-1.5b-instruct 32768 - - 0.1 0.1 0.1 0.1
deepseek-ai/DeepSeek-R1-0528 163840 - - 3 3 3 7
deepseek-ai/DeepSeek-R1-Distill-Llama-70B 131072 - - 2 2 2 2
deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B 131072 - - 0.18 0.18 0.18 0.18
deepseek-ai/DeepSeek-R1-Distill-Qwen-14B 131072 - - 1.6 1.6 1.6 1.6
deepseek-ai/DeepSeek-V3 65536 8192 s 1.25 1.25 1.25 1.25
deepseek-ai/DeepSeek-V3.1 131072 - - 0.6 0.6 0.6 1.7
deepseek-ai/DeepSeek-V4-Flash-0731 1048576 - s 0.14 0.03 0.14 0.28
deepseek-ai/DeepSeek-V4-Pro-0813 1048576 - s 1.32 0.13 1.32 3.96
deepseek-ai/DeepSeek-V4.1-Flash 1048576 - s 0.3 0.006 0.3 1.2
deepseek-ai/DeepSeek-V4.1-Flash-1017 1048576 - s 0.3 0.006 0.3 1.2
deepseek-ai/deepseek-coder-33b-instruct 16384 - - 0.8 0.8 0.8 0.8
google/gemma-2-27b-it 8192 - - 0.8 0.8 0.8 0.8
google/gemma-4-31B-it 262144 - - 0.39 0.39 0.39 0.97
meta-llama/Llama-3-8b-chat-hf 8192 - - 0.2 0.2 0.2 0.2
meta-llama/Llama-3.1-405B-Instruct 4096 - - 3.5 3.5 3.5 3.5
meta-llama/Llama-3.2-1B-Instruct 131072 - - 0.06 0.06 0.06 0.06
meta-llama/Llama-3.2-3B-Instruct 131072 - - 0.06 0.06 0.06 0.06
meta-llama/Llama-3.3-70B-Instruct-Turbo 131072 - s 1.04 1.04 1.04 1.04
meta-llama/Llama-4-Scout-17B-16E-Instruct 1048576 - - 0.18 0.18 0.18 0.59
meta-llama/Meta-Llama-3-70B-Instruct-Turbo 8192 - - 0.88 0.88 0.88 0.88
meta-llama/Meta-Llama-3-8B-Instruct 8192 - - 0.2 0.2 0.2 0.2
meta-llama/Meta-Llama-3.1-70B-Instruct-Turbo 131072 - - 0.88 0.88 0.88 0.88
meta-llama/Meta-Llama-3.1-8B-Instruct-Turbo 131072 - - 0.18 0.18 0.18 0.18
meta-models/Muse-Glimmer-30B 131072 - - 0.35 0.04 0.35 1.5
meta-models/Muse-Spark-Open-816B-A42B 1048576 - s 1.25 0.15 1.25 4.25
mistralai/Ministral-3-14B-Instruct-2512 262144 - - 0.2 0.2 0.2 0.2
mistralai/Mistral-7B-Instruct-v0.1 32768 - - 0.2 0.2 0.2 0.2
mistralai/Mistral-7B-Instruct-v0.3 32768 - - 0.2 0.2 0.2 0.2
mistralai/Mistral-Small-24B-Instruct-2501 32768 - - 0.1 0.1 0.1 0.3
mistralai/Mixtral-8x7B-Instruct-v0.1 32768 - - 0.6 0.6 0.6 0.6
moonshotai/Kimi-K2-Instruct - - s 1 1 1 3
moonshotai/Kimi-K2.5-fp4 262144 - - 0.5 0.5 0.5 2.8
moonshotai/Kimi-K2.6 262144 - - 1.2 0.2 1.2 4.5
moonshotai/Kimi-K2.7-Code 262144 - - 0.95 0.19 0.95 4
moonshotai/Kimi-K3 1048576 - s 3 0.3 3 15
nvidia/Llama-3.1-Nemotron-70B-Instruct-HF 32768 - - 0.88 0.88 0.88 0.88
nvidia/NVIDIA-Nemotron-3.5-Super-VL 262144 - s 0.15 0.02 0.15 0.5
nvidia/NVIDIA-Nemotron-Nano-9B-v2 131072 - - 0.06 0.06 0.06 0.25
nvidia/nemotron-3-ultra-550b-a55b 512288 - - 0.6 0.2 0.6 3.6
openai/gpt-oss-120b 131072 - s 0.15 0.15 0.15 0.6
openai/gpt-oss-20b 131072 - - 0.05 0.05 0.05 0.2
reflection/Beam-1.0-501B-A23B 1048576 - s 0.4 0.04 0.4 1.2
thinkingmachines/Inkling 524288 - s 1 0.17 1 4.05
together-ai-21.1b-41b - - - 0.8 0.8 0.8 0.8
together-ai-4.1b-8b - - - 0.2 0.2 0.2 0.2
together-ai-41.1b-80b - - - 0.9 0.9 0.9 0.9
together-ai-8.1b-21b 1000 - - 0.3 0.3 0.3 0.3
together-ai-81.1b-110b - - - 1.8 1.8 1.8 1.8
together-ai-up-to-4b - - - 0.1 0.1 0.1 0.1
together/Tev1-4B-experimental 32768 - -
zai-org/GLM-4.5-Air-FP8 131072 - - 0.2 0.2 0.2 1.1
zai-org/GLM-4.6 202752 - - 0.6 0.6 0.6 2.2
zai-org/GLM-4.7 202752 - - 0.45 0.45 0.45 2
zai-org/GLM-5 202752 - - 1 1 1 3.2
zai-org/GLM-5.1 202752 - - 1.4 0.26 1.4 4.4
zai-org/GLM-5.2 1048575 128000 s 1.4 0.26 1.4 4.4
zai-org/GLM-5.3 1048575 128000 s 1.4 0.26 1.4 4.4
zai-org/GLM-5.3-Flash 1048575 128000 s 0.15 0.03 0.15 0.5
[fireworks]
accounts/fireworks/models/chronos-hermes-13b-v2 4096 4096 - 0.2 0.2 0.2 0.2
accounts/fireworks/models/code-llama-13b 16384 16384 - 0.2 0.2 0.2 0.2
accounts/fireworks/models/code-llama-13b-instruct 16384 16384 - 0.2 0.2 0.2 0.2
accounts/fireworks/models/code-llama-13b-python 16384 16384 - 0.2 0.2 0.2 0.2
accounts/fireworks/models/code-llama-34b 16384 16384 - 0.9 0.9 0.9 0.9
accounts/fireworks/models/code-llama-34b-instruct 16384 16384 - 0.9 0.9 0.9 0.9
accounts/fireworks/models/code-llama-34b-python 16384 16384 - 0.9 0.9 0.9 0.9
accounts/fireworks/models/code-llama-70b 4096 4096 - 0.9 0.9 0.9 0.9
accounts/fireworks/models/code-llama-70b-instruct 4096 4096 - 0.9 0.9 0.9 0.9
accounts/fireworks/models/code-llama-70b-python 4096 4096 - 0.9 0.9 0.9 0.9
accounts/fireworks/models/code-llama-7b 16384 16384 - 0.2 0.2 0.2 0.2
accounts/fireworks/models/code-llama-7b-instruct 16384 16384 - 0.2 0.2 0.2 0.2
accounts/fireworks/models/code-llama-7b-python 16384 16384 - 0.2 0.2 0.2 0.2
accounts/fireworks/models/code-qwen-1p5-7b 65536 65536 - 0.2 0.2 0.2 0.2
accounts/fireworks/models/codegemma-2b 8192 8192 - 0.1 0.1 0.1 0.1
accounts/fireworks/models/codegemma-7b 8192 8192 - 0.2 0.2 0.2 0.2
accounts/fireworks/models/cogito-671b-v2-p1 163840 163840 - 1.2 1.2 1.2 1.2
accounts/fireworks/models/cogito-v1-preview-llama-3b 131072 131072 - 0.1 0.1 0.1 0.1
accounts/fireworks/models/cogito-v1-preview-llama-70b 131072 131072 - 0.9 0.9 0.9 0.9
accounts/fireworks/models/cogito-v1-preview-llama-8b 131072 131072 - 0.2 0.2 0.2 0.2
accounts/fireworks/models/cogito-v1-preview-qwen-14b 131072 131072 - 0.2 0.2 0.2 0.2
accounts/fireworks/models/cogito-v1-preview-qwen-32b 131072 131072 - 0.9 0.9 0.9 0.9
accounts/fireworks/models/dbrx-instruct 32768 32768 - 1.2 1.2 1.2 1.2
accounts/fireworks/models/deepseek-coder-1b-base 16384 16384 - 0.1 0.1 0.1 0.1
accounts/fireworks/models/deepseek-coder-33b-instruct 16384 16384 - 0.9 0.9 0.9 0.9
accounts/fireworks/models/deepseek-coder-7b-base 4096 4096 - 0.2 0.2 0.2 0.2
accounts/fireworks/models/deepseek-coder-7b-base-v1p5 4096 4096 - 0.2 0.2 0.2 0.2
accounts/fireworks/models/deepseek-coder-7b-instruct-v1p5 4096 4096 - 0.2 0.2 0.2 0.2
accounts/fireworks/models/deepseek-coder-v2-instruct 65536 65536 s 1.2 1.2 1.2 1.2
accounts/fireworks/models/deepseek-coder-v2-lite-base 163840 163840 - 0.5 0.5 0.5 0.5
accounts/fireworks/models/deepseek-coder-v2-lite-instruct 163840 163840 - 0.5 0.5 0.5 0.5
accounts/fireworks/models/deepseek-prover-v2 163840 163840 - 1.2 1.2 1.2 1.2
accounts/fireworks/models/deepseek-r1 163840 20480 s 3 3 3 8
accounts/fireworks/models/deepseek-r1-0528 163840 160000 s 3 3 3 8
accounts/fireworks/models/deepseek-r1-0528-distill-qwen3-8b 131072 131072 - 0.2 0.2 0.2 0.2
accounts/fireworks/models/deepseek-r1-basic 163840 20480 s 0.55 0.55 0.55 2.19
accounts/fireworks/models/deepseek-r1-distill-llama-70b 131072 131072 - 0.9 0.9 0.9 0.9
accounts/fireworks/models/deepseek-r1-distill-llama-8b 131072 131072 - 0.2 0.2 0.2 0.2
accounts/fireworks/models/deepseek-r1-distill-qwen-14b 131072 131072 - 0.2 0.2 0.2 0.2
accounts/fireworks/models/deepseek-r1-distill-qwen-1p5b 131072 131072 - 0.1 0.1 0.1 0.1
accounts/fireworks/models/deepseek-r1-distill-qwen-32b 131072 131072 - 0.9 0.9 0.9 0.9
accounts/fireworks/models/deepseek-r1-distill-qwen-7b 131072 131072 - 0.2 0.2 0.2 0.2
accounts/fireworks/models/deepseek-v2-lite-chat 163840 163840 - 0.5 0.5 0.5 0.5
accounts/fireworks/models/deepseek-v2p5 32768 32768 - 1.2 1.2 1.2 1.2
accounts/fireworks/models/deepseek-v3 131072 8192 s 0.9 0.9 0.9 0.9
accounts/fireworks/models/deepseek-v3-0324 163840 163840 s 0.9 0.9 0.9 0.9
accounts/fireworks/models/deepseek-v3p1 128000 8192 s 0.56 0.56 0.56 1.68
accounts/fireworks/models/deepseek-v3p1-terminus 128000 8192 s 0.56 0.56 0.56 1.68
accounts/fireworks/models/deepseek-v3p2 163840 163840 s 0.56 0.56 0.56 1.68
accounts/fireworks/models/deepseek-v4-flash 1048576 384000 s 0.14 0.028 0.14 0.28
accounts/fireworks/models/deepseek-v4-flash-0731 1048576 131072 s 0.22 0.007 0.22 0.66
accounts/fireworks/models/deepseek-v4-flash-vision-exp 1048576 - s 0.22 0.007 0.22 0.66
accounts/fireworks/models/deepseek-v4-pro 1048576 131072 s 1.2 0.6 1.2 1.2
accounts/fireworks/models/deepseek-v4-pro-0813 1048576 131072 s 1.32 0.044 1.32 3.96
accounts/fireworks/models/deepseek-v4p1-flash 1048576 393216 s 0.3 0.006 0.3 1.2
accounts/fireworks/models/deepseek-v4p1-flash-1017 1048576 393216 s 0.3 0.006 0.3 1.2
accounts/fireworks/models/deepseek-v4p1-flash-1017-us 1048576 393216 s 0.45 0.009 0.45 1.8
accounts/fireworks/models/devstral-small-2505 131072 131072 - 0.9 0.9 0.9 0.9
accounts/fireworks/models/dobby-mini-unhinged-plus-llama-3-1-8b 131072 131072 - 0.2 0.2 0.2 0.2
accounts/fireworks/models/dobby-unhinged-llama-3-3-70b-new 131072 131072 - 0.9 0.9 0.9 0.9
accounts/fireworks/models/dolphin-2-9-2-qwen2-72b 131072 131072 - 0.9 0.9 0.9 0.9
accounts/fireworks/models/dolphin-2p6-mixtral-8x7b 32768 32768 - 0.5 0.5 0.5 0.5
accounts/fireworks/models/ember-1 1048576 - s 3 0.3 3 15
accounts/fireworks/models/ernie-4p5-21b-a3b-pt 131072 4096 - 0.1 0.1 0.1 0.1
accounts/fireworks/models/ernie-4p5-300b-a47b-pt 131072 4096 - 0.1 0.1 0.1 0.1
accounts/fireworks/models/fare-20b 131072 131072 - 0.9 0.9 0.9 0.9
accounts/fireworks/models/firefunction-v1 32768 32768 - 0.5 0.5 0.5 0.5
accounts/fireworks/models/firefunction-v2 8192 8192 s 0.9 0.9 0.9 0.9
accounts/fireworks/models/firellava-13b 4096 4096 - 0.2 0.2 0.2 0.2
accounts/fireworks/models/firesearch-ocr-v6 8192 8192 - 0.2 0.2 0.2 0.2
accounts/fireworks/models/flux-1-dev 4096 4096 - 0.1 0.1 0.1 0.1
accounts/fireworks/models/flux-1-dev-controlnet-union 4096 4096 - 0.001 0.001 0.001 0.001
accounts/fireworks/models/flux-1-schnell 4096 4096 - 0.1 0.1 0.1 0.1
accounts/fireworks/models/gemma-2b-it 8192 8192 - 0.1 0.1 0.1 0.1
accounts/fireworks/models/gemma-3-27b-it 131072 131072 - 0.9 0.9 0.9 0.9
accounts/fireworks/models/gemma-7b 8192 8192 - 0.2 0.2 0.2 0.2
accounts/fireworks/models/gemma-7b-it 8192 8192 - 0.2 0.2 0.2 0.2
accounts/fireworks/models/gemma2-9b-it 8192 8192 - 0.2 0.2 0.2 0.2
accounts/fireworks/models/glm-4p5 131072 96000 s 0.55 0.55 0.55 2.19
accounts/fireworks/models/glm-4p5-air 131072 96000 s 0.22 0.22 0.22 0.88
accounts/fireworks/models/glm-4p5v 131072 131072 - 1.2 1.2 1.2 1.2
accounts/fireworks/models/glm-4p6 202752 202800 s 0.55 0.55 0.55 2.19
accounts/fireworks/models/glm-4p7 202752 202800 s 0.6 0.3 0.6 2.2
accounts/fireworks/models/glm-5p1 202752 131072 s 1.4 0.26 1.4 4.4
accounts/fireworks/models/glm-5p2 1048576 131072 s 1.4 0.14 1.4 4.4
accounts/fireworks/models/glm-5p3 1048576 128000 s 1.4 0.26 1.4 4.4
accounts/fireworks/models/glm-5p3-flash 1048576 - s 0.15 0.03 0.15 0.5
accounts/fireworks/models/gpt-oss-120b 131072 32768 s 0.15 0.015 0.15 0.6
accounts/fireworks/models/gpt-oss-20b 131072 32768 s 0.07 0.035 0.07 0.3
accounts/fireworks/models/gpt-oss-safeguard-120b 131072 131072 - 1.2 1.2 1.2 1.2
accounts/fireworks/models/gpt-oss-safeguard-20b 131072 131072 - 0.5 0.5 0.5 0.5
accounts/fireworks/models/hermes-2-pro-mistral-7b 32768 32768 - 0.2 0.2 0.2 0.2
accounts/fireworks/models/inkling 1048576 - s 1 0.17 1 4.05
accounts/fireworks/models/internvl3-38b 16384 16384 - 0.9 0.9 0.9 0.9
accounts/fireworks/models/internvl3-78b 16384 16384 - 0.9 0.9 0.9 0.9
accounts/fireworks/models/internvl3-8b 16384 16384 - 0.2 0.2 0.2 0.2
accounts/fireworks/models/kat-coder 262144 262144 - 0.9 0.9 0.9 0.9
accounts/fireworks/models/kat-dev-32b 131072 131072 - 0.9 0.9 0.9 0.9
accounts/fireworks/models/kat-dev-72b-exp 131072 131072 - 0.9 0.9 0.9 0.9
accounts/fireworks/models/kimi-k2-instruct 131072 16384 s 0.6 0.6 0.6 2.5
accounts/fireworks/models/kimi-k2-instruct-0905 262144 32768 s 0.6 0.6 0.6 2.5
accounts/fireworks/models/kimi-k2-thinking 262144 262144 s 0.6 0.6 0.6 2.5
accounts/fireworks/models/kimi-k2p5 262144 32768 s 0.6 0.1 0.6 3
accounts/fireworks/models/kimi-k2p6 262144 32768 s 0.95 0.16 0.95 4
accounts/fireworks/models/kimi-k2p7-code 262144 32768 s 0.95 0.19 0.95 4
accounts/fireworks/models/kimi-k3 1048576 131072 s 3 0.3 3 15
accounts/fireworks/models/llama-guard-2-8b 8192 8192 - 0.2 0.2 0.2 0.2
accounts/fireworks/models/llama-guard-3-1b 131072 131072 - 0.1 0.1 0.1 0.1
accounts/fireworks/models/llama-guard-3-8b 131072 131072 - 0.2 0.2 0.2 0.2
accounts/fireworks/models/llama-v2-13b 4096 4096 - 0.2 0.2 0.2 0.2
accounts/fireworks/models/llama-v2-13b-chat 4096 4096 - 0.2 0.2 0.2 0.2
accounts/fireworks/models/llama-v2-70b 4096 4096 - 0.1 0.1 0.1 0.1
accounts/fireworks/models/llama-v2-70b-chat 2048 2048 - 0.9 0.9 0.9 0.9
accounts/fireworks/models/llama-v2-7b 4096 4096 - 0.2 0.2 0.2 0.2
accounts/fireworks/models/llama-v2-7b-chat 4096 4096 - 0.2 0.2 0.2 0.2
accounts/fireworks/models/llama-v3-70b-instruct 8192 8192 - 0.9 0.9 0.9 0.9
accounts/fireworks/models/llama-v3-70b-instruct-hf 8192 8192 - 0.9 0.9 0.9 0.9
accounts/fireworks/models/llama-v3-8b 8192 8192 - 0.2 0.2 0.2 0.2
accounts/fireworks/models/llama-v3-8b-instruct-hf 8192 8192 - 0.2 0.2 0.2 0.2
accounts/fireworks/models/llama-v3p1-405b-instruct 131072 16384 s 3 3 3 3
accounts/fireworks/models/llama-v3p1-405b-instruct-long 4096 4096 - 0.1 0.1 0.1 0.1
accounts/fireworks/models/llama-v3p1-70b-instruct 131072 131072 - 0.9 0.9 0.9 0.9
accounts/fireworks/models/llama-v3p1-70b-instruct-1b 4096 4096 - 0.1 0.1 0.1 0.1
accounts/fireworks/models/llama-v3p1-8b-instruct 131072 16384 s 0.1 0.1 0.1 0.1
accounts/fireworks/models/llama-v3p1-nemotron-70b-instruct 131072 131072 - 0.9 0.9 0.9 0.9
accounts/fireworks/models/llama-v3p2-11b-vision-instruct 131072 16384 s 0.2 0.2 0.2 0.2
accounts/fireworks/models/llama-v3p2-1b 131072 131072 - 0.1 0.1 0.1 0.1
accounts/fireworks/models/llama-v3p2-1b-instruct 131072 16384 s 0.1 0.1 0.1 0.1
accounts/fireworks/models/llama-v3p2-3b 131072 131072 - 0.1 0.1 0.1 0.1
accounts/fireworks/models/llama-v3p2-3b-instruct 131072 16384 s 0.1 0.1 0.1 0.1
accounts/fireworks/models/llama-v3p2-90b-vision-instruct 131072 16384 s 0.9 0.9 0.9 0.9
accounts/fireworks/models/llama-v3p3-70b-instruct 131072 131072 - 0.9 0.9 0.9 0.9
accounts/fireworks/models/llama4-maverick-instruct-basic 131072 131072 s 0.22 0.22 0.22 0.88
accounts/fireworks/models/llama4-scout-instruct-basic 131072 131072 s 0.15 0.15 0.15 0.6
accounts/fireworks/models/llamaguard-7b 4096 4096 - 0.2 0.2 0.2 0.2
accounts/fireworks/models/llava-yi-34b 4096 4096 - 0.9 0.9 0.9 0.9
accounts/fireworks/models/minimax-m1-80k 4096 4096 - 0.1 0.1 0.1 0.1
accounts/fireworks/models/minimax-m2 196608 4096 - 0.3 0.3 0.3 1.2
accounts/fireworks/models/minimax-m2p1 196608 204800 s 0.3 0.03 0.3 1.2
accounts/fireworks/models/minimax-m2p7 196608 196608 s
accounts/fireworks/models/minimax-m3 512000 512000 s 0.3 0.06 0.3 1.2
accounts/fireworks/models/minimax-m3p1-flash 1048576 1048576 s 0.15 0.015 0.15 0.6
accounts/fireworks/models/ministral-3-14b-instruct-2512 256000 256000 - 0.2 0.2 0.2 0.2
accounts/fireworks/models/ministral-3-3b-instruct-2512 256000 256000 - 0.1 0.1 0.1 0.1
accounts/fireworks/models/ministral-3-8b-instruct-2512 256000 256000 - 0.2 0.2 0.2 0.2
accounts/fireworks/models/mistral-7b 32768 32768 - 0.2 0.2 0.2 0.2
accounts/fireworks/models/mistral-7b-instruct-4k 32768 32768 - 0.2 0.2 0.2 0.2
accounts/fireworks/models/mistral-7b-instruct-v0p2 32768 32768 - 0.2 0.2 0.2 0.2
accounts/fireworks/models/mistral-7b-instruct-v3 32768 32768 - 0.2 0.2 0.2 0.2
accounts/fireworks/models/mistral-7b-v0p2 32768 32768 - 0.2 0.2 0.2 0.2
accounts/fireworks/models/mistral-large-3-fp8 256000 256000 - 1.2 1.2 1.2 1.2
accounts/fireworks/models/mistral-nemo-base-2407 128000 128000 - 0.2 0.2 0.2 0.2
accounts/fireworks/models/mistral-nemo-instruct-2407 128000 128000 - 0.2 0.2 0.2 0.2
accounts/fireworks/models/mistral-small-24b-instruct-2501 32768 32768 - 0.9 0.9 0.9 0.9
accounts/fireworks/models/mixtral-8x22b 65536 65536 - 1.2 1.2 1.2 1.2
accounts/fireworks/models/mixtral-8x22b-instruct 65536 65536 - 1.2 1.2 1.2 1.2
accounts/fireworks/models/mixtral-8x22b-instruct-hf 65536 65536 s 1.2 1.2 1.2 1.2
accounts/fireworks/models/mixtral-8x7b 32768 32768 - 0.5 0.5 0.5 0.5
accounts/fireworks/models/mixtral-8x7b-instruct 32768 32768 - 0.5 0.5 0.5 0.5
accounts/fireworks/models/mixtral-8x7b-instruct-hf 32768 32768 - 0.5 0.5 0.5 0.5
accounts/fireworks/models/muse-glimmer-30b 131072 16384 s 0.35 0.04 0.35 1.5
accounts/fireworks/models/muse-spark-open 1048576 - - 1.25 0.15 1.25 4.25
accounts/fireworks/models/mythomax-l2-13b 4096 4096 - 0.2 0.2 0.2 0.2
accounts/fireworks/models/nemotron-3-ultra-nvfp4 262144 32768 s 0.6 0.12 0.6 2.4
accounts/fireworks/models/nemotron-lightning-3p5-30b-a3b 262144 32768 s 0.05 0.01 0.05 0.2
accounts/fireworks/models/nemotron-nano-v2-12b-vl 131072 4096 - 0.1 0.1 0.1 0.1
accounts/fireworks/models/nous-capybara-7b-v1p9 32768 32768 - 0.2 0.2 0.2 0.2
accounts/fireworks/models/nous-hermes-2-mixtral-8x7b-dpo 32768 32768 - 0.5 0.5 0.5 0.5
accounts/fireworks/models/nous-hermes-2-yi-34b 4096 4096 - 0.9 0.9 0.9 0.9
accounts/fireworks/models/nous-hermes-llama2-13b 4096 4096 - 0.2 0.2 0.2 0.2
accounts/fireworks/models/nous-hermes-llama2-70b 4096 4096 - 0.9 0.9 0.9 0.9
accounts/fireworks/models/nous-hermes-llama2-7b 4096 4096 - 0.2 0.2 0.2 0.2
accounts/fireworks/models/nvidia-nemotron-nano-12b-v2 128000 131072 - 0.2 0.2 0.2 0.2
accounts/fireworks/models/nvidia-nemotron-nano-9b-v2 128000 131072 - 0.2 0.2 0.2 0.2
accounts/fireworks/models/openchat-3p5-0106-7b 8192 8192 - 0.2 0.2 0.2 0.2
accounts/fireworks/models/openhermes-2-mistral-7b 32768 32768 - 0.2 0.2 0.2 0.2
accounts/fireworks/models/openhermes-2p5-mistral-7b 32768 32768 - 0.2 0.2 0.2 0.2
accounts/fireworks/models/openorca-7b 32768 32768 - 0.2 0.2 0.2 0.2
accounts/fireworks/models/phi-2-3b 2048 2048 - 0.1 0.1 0.1 0.1
accounts/fireworks/models/phi-3-mini-128k-instruct 131072 131072 - 0.1 0.1 0.1 0.1
accounts/fireworks/models/phi-3-vision-128k-instruct 32064 32064 - 0.2 0.2 0.2 0.2
accounts/fireworks/models/phind-code-llama-34b-python-v1 16384 16384 - 0.9 0.9 0.9 0.9
accounts/fireworks/models/phind-code-llama-34b-v1 16384 16384 - 0.9 0.9 0.9 0.9
accounts/fireworks/models/phind-code-llama-34b-v2 16384 16384 - 0.9 0.9 0.9 0.9
accounts/fireworks/models/pythia-12b 2048 2048 - 0.2 0.2 0.2 0.2
accounts/fireworks/models/qwen-qwq-32b-preview 32768 32768 - 0.9 0.9 0.9 0.9
accounts/fireworks/models/qwen-v2p5-14b-instruct 32768 32768 - 0.2 0.2 0.2 0.2
accounts/fireworks/models/qwen-v2p5-7b 131072 131072 - 0.2 0.2 0.2 0.2
accounts/fireworks/models/qwen1p5-72b-chat 32768 32768 - 0.9 0.9 0.9 0.9
accounts/fireworks/models/qwen2-72b-instruct 32768 32768 s 0.9 0.9 0.9 0.9
accounts/fireworks/models/qwen2-7b-instruct 32768 32768 - 0.2 0.2 0.2 0.2
accounts/fireworks/models/qwen2-vl-2b-instruct 32768 32768 - 0.1 0.1 0.1 0.1
accounts/fireworks/models/qwen2-vl-72b-instruct 32768 32768 - 0.9 0.9 0.9 0.9
accounts/fireworks/models/qwen2-vl-7b-instruct 32768 32768 - 0.2 0.2 0.2 0.2
accounts/fireworks/models/qwen2p5-0p5b-instruct 32768 32768 - 0.1 0.1 0.1 0.1
accounts/fireworks/models/qwen2p5-14b 131072 131072 - 0.2 0.2 0.2 0.2
accounts/fireworks/models/qwen2p5-1p5b-instruct 32768 32768 - 0.1 0.1 0.1 0.1
accounts/fireworks/models/qwen2p5-32b 131072 131072 - 0.9 0.9 0.9 0.9
accounts/fireworks/models/qwen2p5-32b-instruct 32768 32768 - 0.9 0.9 0.9 0.9
accounts/fireworks/models/qwen2p5-72b 131072 131072 - 0.9 0.9 0.9 0.9
accounts/fireworks/models/qwen2p5-72b-instruct 32768 32768 - 0.9 0.9 0.9 0.9
accounts/fireworks/models/qwen2p5-7b-instruct 32768 32768 - 0.2 0.2 0.2 0.2
accounts/fireworks/models/qwen2p5-coder-0p5b 32768 32768 - 0.1 0.1 0.1 0.1
accounts/fireworks/models/qwen2p5-coder-0p5b-instruct 32768 32768 - 0.1 0.1 0.1 0.1
accounts/fireworks/models/qwen2p5-coder-14b 32768 32768 - 0.2 0.2 0.2 0.2
accounts/fireworks/models/qwen2p5-coder-14b-instruct 32768 32768 - 0.2 0.2 0.2 0.2
accounts/fireworks/models/qwen2p5-coder-1p5b 32768 32768 - 0.1 0.1 0.1 0.1
accounts/fireworks/models/qwen2p5-coder-1p5b-instruct 32768 32768 - 0.1 0.1 0.1 0.1
accounts/fireworks/models/qwen2p5-coder-32b 32768 32768 - 0.9 0.9 0.9 0.9
accounts/fireworks/models/qwen2p5-coder-32b-instruct 4096 4096 s 0.9 0.9 0.9 0.9
accounts/fireworks/models/qwen2p5-coder-32b-instruct-128k 131072 131072 - 0.9 0.9 0.9 0.9
accounts/fireworks/models/qwen2p5-coder-32b-instruct-32k-rope 32768 32768 - 0.9 0.9 0.9 0.9
accounts/fireworks/models/qwen2p5-coder-32b-instruct-64k 65536 65536 - 0.9 0.9 0.9 0.9
accounts/fireworks/models/qwen2p5-coder-3b 32768 32768 - 0.1 0.1 0.1 0.1
accounts/fireworks/models/qwen2p5-coder-3b-instruct 32768 32768 - 0.1 0.1 0.1 0.1
accounts/fireworks/models/qwen2p5-coder-7b 32768 32768 - 0.2 0.2 0.2 0.2
accounts/fireworks/models/qwen2p5-coder-7b-instruct 32768 32768 - 0.2 0.2 0.2 0.2
accounts/fireworks/models/qwen2p5-math-72b-instruct 4096 4096 - 0.9 0.9 0.9 0.9
accounts/fireworks/models/qwen2p5-vl-32b-instruct 128000 128000 - 0.9 0.9 0.9 0.9
accounts/fireworks/models/qwen2p5-vl-3b-instruct 128000 128000 - 0.2 0.2 0.2 0.2
accounts/fireworks/models/qwen2p5-vl-72b-instruct 128000 128000 - 0.9 0.9 0.9 0.9
accounts/fireworks/models/qwen2p5-vl-7b-instruct 128000 128000 - 0.2 0.2 0.2 0.2
accounts/fireworks/models/qwen3-0p6b 40960 40960 - 0.1 0.1 0.1 0.1
accounts/fireworks/models/qwen3-14b 40960 40960 - 0.2 0.2 0.2 0.2
accounts/fireworks/models/qwen3-1p7b 131072 131072 - 0.1 0.1 0.1 0.1
accounts/fireworks/models/qwen3-1p7b-fp8-draft 262144 262144 - 0.1 0.1 0.1 0.1
accounts/fireworks/models/qwen3-1p7b-fp8-draft-131072 131072 131072 - 0.1 0.1 0.1 0.1
accounts/fireworks/models/qwen3-1p7b-fp8-draft-40960 40960 40960 - 0.1 0.1 0.1 0.1
accounts/fireworks/models/qwen3-235b-a22b 131072 131072 - 0.22 0.22 0.22 0.88
accounts/fireworks/models/qwen3-235b-a22b-instruct-2507 262144 262144 - 0.22 0.22 0.22 0.88
accounts/fireworks/models/qwen3-235b-a22b-thinking-2507 262144 262144 - 0.22 0.22 0.22 0.88
accounts/fireworks/models/qwen3-30b-a3b 131072 131072 - 0.15 0.15 0.15 0.6
accounts/fireworks/models/qwen3-30b-a3b-instruct-2507 262144 262144 - 0.5 0.5 0.5 0.5
accounts/fireworks/models/qwen3-30b-a3b-thinking-2507 262144 262144 - 0.9 0.9 0.9 0.9
accounts/fireworks/models/qwen3-32b 131072 131072 - 0.9 0.9 0.9 0.9
accounts/fireworks/models/qwen3-4b 40960 40960 - 0.2 0.2 0.2 0.2
accounts/fireworks/models/qwen3-4b-instruct-2507 262144 262144 - 0.2 0.2 0.2 0.2
accounts/fireworks/models/qwen3-8b 40960 40960 - 0.2 0.2 0.2 0.2
accounts/fireworks/models/qwen3-coder-30b-a3b-instruct 262144 262144 - 0.15 0.15 0.15 0.6
accounts/fireworks/models/qwen3-coder-480b-a35b-instruct 262144 262144 - 0.45 0.45 0.45 1.8
accounts/fireworks/models/qwen3-coder-480b-instruct-bf16 262144 4096 - 0.9 0.9 0.9 0.9
accounts/fireworks/models/qwen3-next-80b-a3b-instruct 4096 4096 - 0.9 0.9 0.9 0.9
accounts/fireworks/models/qwen3-next-80b-a3b-thinking 4096 4096 - 0.9 0.9 0.9 0.9
accounts/fireworks/models/qwen3-vl-235b-a22b-instruct 262144 262144 - 0.22 0.22 0.22 0.88
accounts/fireworks/models/qwen3-vl-235b-a22b-thinking 262144 262144 - 0.22 0.22 0.22 0.88
accounts/fireworks/models/qwen3-vl-30b-a3b-instruct 262144 262144 - 0.15 0.15 0.15 0.6
accounts/fireworks/models/qwen3-vl-30b-a3b-thinking 262144 262144 - 0.15 0.15 0.15 0.6
accounts/fireworks/models/qwen3-vl-32b-instruct 4096 4096 - 0.9 0.9 0.9 0.9
accounts/fireworks/models/qwen3-vl-8b-instruct 262144 4096 - 0.2 0.2 0.2 0.2
accounts/fireworks/models/qwen3p7-plus 262144 65536 s 0.4 0.08 0.4 1.6
accounts/fireworks/models/qwen3p8-max 262144 - s 2 0.25 2 6
accounts/fireworks/models/qwq-32b 131072 131072 - 0.9 0.9 0.9 0.9
accounts/fireworks/models/rolm-ocr 128000 128000 - 0.2 0.2 0.2 0.2
accounts/fireworks/models/snorkel-mistral-7b-pairrm-dpo 32768 32768 - 0.2 0.2 0.2 0.2
accounts/fireworks/models/stablecode-3b 4096 4096 - 0.1 0.1 0.1 0.1
accounts/fireworks/models/starcoder-16b 8192 8192 - 0.2 0.2 0.2 0.2
accounts/fireworks/models/starcoder-7b 8192 8192 - 0.2 0.2 0.2 0.2
accounts/fireworks/models/starcoder2-15b 16384 16384 - 0.2 0.2 0.2 0.2
accounts/fireworks/models/starcoder2-3b 16384 16384 - 0.1 0.1 0.1 0.1
accounts/fireworks/models/starcoder2-7b 16384 16384 - 0.2 0.2 0.2 0.2
accounts/fireworks/models/toppy-m-7b 32768 32768 - 0.2 0.2 0.2 0.2
accounts/fireworks/models/yi-34b 4096 4096 - 0.9 0.9 0.9 0.9
accounts/fireworks/models/yi-34b-200k-capybara 200000 200000 - 0.9 0.9 0.9 0.9
accounts/fireworks/models/yi-34b-chat 4096 4096 - 0.9 0.9 0.9 0.9
accounts/fireworks/models/yi-6b 4096 4096 - 0.2 0.2 0.2 0.2
accounts/fireworks/models/yi-large 32768 32768 s 3 3 3 3
accounts/fireworks/models/zephyr-7b-beta 32768 32768 - 0.2 0.2 0.2 0.2
accounts/fireworks/routers/deepseek-v4p1-flash-us 1048576 393216 s 0.45 0.009 0.45 1.8
accounts/fireworks/routers/glm-5p1-fast 202800 131072 s 2.8 0.52 2.8 8.8
accounts/fireworks/routers/glm-5p2-fast 1048576 131072 s 2.1 0.21 2.1 6.6
accounts/fireworks/routers/glm-5p2-fast-us 1048576 131072 s 2.1 0.21 2.1 6.6
accounts/fireworks/routers/glm-5p3-fast 1048576 - s 2.1 0.39 2.1 6.6
accounts/fireworks/routers/glm-5p3-flash-us 1048576 - s 0.225 0.045 0.225 0.75
accounts/fireworks/routers/glm-5p3-us 1048576 128000 s 2.1 0.39 2.1 6.6
accounts/fireworks/routers/kimi-k2p6-fast 262144 32768 s 2 0.3 2 8
accounts/fireworks/routers/kimi-k2p7-code-fast 262144 32768 s 1.9 0.38 1.9 8
accounts/fireworks/routers/kimi-k3-fast 1048576 131072 s 4.5 0.45 4.5 22.5
accounts/fireworks/routers/kimi-k3-us 1048576 131072 s 4.5 0.45 4.5 22.5
deepseek-v4-flash 1048576 384000 s 0.14 0.028 0.14 0.28
deepseek-v4-flash-0731 1048576 131072 s 0.22 0.007 0.22 0.66
deepseek-v4-flash-vision-exp 1048576 - s 0.22 0.007 0.22 0.66
deepseek-v4-pro-0813 1048576 131072 s 1.32 0.044 1.32 3.96
deepseek-v4p1-flash 1048576 393216 s 0.3 0.006 0.3 1.2
deepseek-v4p1-flash-us 1048576 393216 s 0.45 0.009 0.45 1.8
glm-4p7 202752 202800 s 0.6 0.3 0.6 2.2
glm-5p1 202752 131072 s 1.4 0.26 1.4 4.4
glm-5p1-fast 202800 131072 s 2.8 0.52 2.8 8.8
glm-5p2 1048576 131072 s 1.4 0.14 1.4 4.4
glm-5p2-fast 1048576 131072 s 2.1 0.21 2.1 6.6
glm-5p2-fast-us 1048576 131072 s 2.1 0.21 2.1 6.6
glm-5p3 1048576 128000 s 1.4 0.26 1.4 4.4
glm-5p3-fast 1048576 - s 2.1 0.39 2.1 6.6
glm-5p3-flash 1048576 - s 0.15 0.03 0.15 0.5
glm-5p3-flash-us 1048576 - s 0.225 0.045 0.225 0.75
glm-5p3-us 1048576 128000 s 2.1 0.39 2.1 6.6
gpt-oss-120b 131072 32768 s 0.15 0.015 0.15 0.6
gpt-oss-20b 131072 32768 s 0.07 0.035 0.07 0.3
kimi-k2p5 262144 32768 s 0.6 0.1 0.6 3
kimi-k2p6 262144 32768 s 0.95 0.16 0.95 4
kimi-k2p6-fast 262144 32768 s 2 0.3 2 8
kimi-k2p7-code 262144 32768 s 0.95 0.19 0.95 4
kimi-k2p7-code-fast 262144 32768 s 1.9 0.38 1.9 8
kimi-k3 1048576 131072 s 3 0.3 3 15
kimi-k3-fast 1048576 131072 s 4.5 0.45 4.5 22.5
kimi-k3-us 1048576 131072 s 4.5 0.45 4.5 22.5
minimax-m2p1 196608 204800 s 0.3 0.03 0.3 1.2
minimax-m3 512000 512000 s 0.3 0.06 0.3 1.2
muse-glimmer-30b 131072 16384 s 0.35 0.04 0.35 1.5
nemotron-3-ultra-nvfp4 262144 32768 s 0.6 0.12 0.6 2.4
nemotron-lightning-3p5-30b-a3b 262144 32768 s 0.05 0.01 0.05 0.2
qwen3p7-plus 262144 65536 s 0.4 0.08 0.4 1.6
qwen3p8-max 262144 - s 2 0.25 2 6
[deepinfra]
ByteDance/Seed-1.8 256000 - s 0.25 0.05 0.25 2
ByteDance/Seed-2.0-code 256000 - s 0.5 0.1 0.5 3
ByteDance/Seed-2.0-mini 256000 - s 0.1 0.02 0.1 0.4
ByteDance/Seed-2.0-pro 256000 - s 0.5 0.1 0.5 3
Gryphe/MythoMax-L2-13b 4096 4096 - 0.4 0.4 0.4 0.4
MiniMaxAI/MiniMax-M2.7 196608 - s 0.25 0.05 0.25 1
MiniMaxAI/MiniMax-M2.7-Turbo 196608 - s 0.38 0.07 0.38 1.7
MiniMaxAI/MiniMax-M3 524288 - s 0.28 0.056 0.28 1.1
NousResearch/Hermes-3-Llama-3.1-405B 131072 131072 - 1 1 1 1
NousResearch/Hermes-3-Llama-3.1-70B 131072 131072 - 0.7 0.7 0.7 0.7
Qwen/QwQ-32B 131072 131072 - 0.15 0.15 0.15 0.4
Qwen/Qwen2.5-72B-Instruct 32768 32768 - 0.36 0.36 0.36 0.4
Qwen/Qwen2.5-7B-Instruct 32768 32768 - 0.04 0.04 0.04 0.1
Qwen/Qwen2.5-VL-32B-Instruct 128000 128000 - 0.2 0.2 0.2 0.6
Qwen/Qwen3-14B 40960 40960 - 0.12 0.12 0.12 0.24
Qwen/Qwen3-235B-A22B 40960 40960 - 0.18 0.18 0.18 0.54
Qwen/Qwen3-235B-A22B-Instruct-2507 262144 262144 - 0.09 0.09 0.09 0.55
Qwen/Qwen3-235B-A22B-Thinking-2507 262144 262144 - 0.3 0.3 0.3 2.9
Qwen/Qwen3-30B-A3B 40960 40960 - 0.12 0.12 0.12 0.5
Qwen/Qwen3-32B 40960 40960 - 0.08 0.08 0.08 0.28
Qwen/Qwen3-Coder-480B-A35B-Instruct 262144 262144 - 0.4 0.4 0.4 1.6
Qwen/Qwen3-Coder-480B-A35B-Instruct-Turbo 262144 262144 - 0.3 0.1 0.3 1
Qwen/Qwen3-Max 256000 - s 1.2 0.24 1.2 6
Qwen/Qwen3-Max-Thinking 256000 - s 1.2 0.24 1.2 6
Qwen/Qwen3-Next-80B-A3B-Instruct 262144 262144 - 0.09 0.09 0.09 1.1
Qwen/Qwen3-Next-80B-A3B-Thinking 262144 262144 - 0.14 0.14 0.14 1.4
Qwen/Qwen3-VL-235B-A22B-Instruct 262144 - s 0.2 0.11 0.2 0.88
Qwen/Qwen3-VL-30B-A3B-Instruct 262144 - s 0.15 0.15 0.15 0.6
Qwen/Qwen3.5-122B-A10B 262144 - s 0.29 0.29 0.29 2.4
Qwen/Qwen3.5-27B 262144 - s 0.26 0.26 0.26 2.6
Qwen/Qwen3.5-35B-A3B 262144 - s 0.14 0.05 0.14 1
Qwen/Qwen3.5-397B-A17B 262144 - s 0.45 0.22 0.45 3
Qwen/Qwen3.5-9B 262144 - s 0.1 0.1 0.1 0.15
Qwen/Qwen3.6-27B 262144 - s 0.32 0.32 0.32 3.2
Qwen/Qwen3.6-35B-A3B 262144 - s 0.1 0.1 0.1 0.95
Qwen/Qwen3.7-Max 256000 - s 2.5 0.5 2.5 7.5
Qwen/Qwen3.8-2.4T-A95B 262144 - s 2 0.2 2 6
Qwen/Qwen3.8-27B 262144 - s 0.4 0.04 0.4 3
Qwen/Qwen3.8-Max 256000 - s 1.65 0.206 1.65 4.951
Sao10K/L3-8B-Lunaris-v1-Turbo 8192 8192 - 0.04 0.04 0.04 0.05
Sao10K/L3.1-70B-Euryale-v2.2 131072 131072 - 0.85 0.85 0.85 0.85
Sao10K/L3.3-70B-Euryale-v2.3 131072 131072 - 0.65 0.65 0.65 0.75
XiaomiMiMo/MiMo-V2.5 262144 - s 0.4 0.08 0.4 2
XiaomiMiMo/MiMo-V2.5-Pro 1048576 - s 1 0.2 1 3
allenai/olmOCR-7B-0725-FP8 16384 16384 - 0.27 0.27 0.27 1.5
anthropic/claude-3-7-sonnet-latest 200000 200000 - 3.3 0.33 3.3 16.5
anthropic/claude-4-opus 200000 200000 - 16.5 16.5 16.5 82.5
anthropic/claude-4-sonnet 200000 200000 - 3.3 3.3 3.3 16.5
anthropic/claude-fable-5 1000000 - s 10 10 10 50
anthropic/claude-haiku-4-5 200000 - s 1 1 1 5
anthropic/claude-opus-4-7 1000000 - s 5 5 5 25
anthropic/claude-opus-4-8 1000000 - s 5 5 5 25
anthropic/claude-opus-5 1000000 - s 5 5 5 25
anthropic/claude-sonnet-4-6 1000000 - s 3 3 3 15
anthropic/claude-sonnet-5 1000000 - s 2 2 2 10
deepseek-ai/DeepSeek-R1 163840 163840 - 0.7 0.7 0.7 2.4
deepseek-ai/DeepSeek-R1-0528 163840 163840 - 0.5 0.4 0.5 2.15
deepseek-ai/DeepSeek-R1-0528-Turbo 32768 32768 - 1 1 1 3
deepseek-ai/DeepSeek-R1-Distill-Llama-70B 131072 131072 - 0.2 0.2 0.2 0.6
deepseek-ai/DeepSeek-R1-Distill-Qwen-32B 131072 131072 - 0.27 0.27 0.27 0.27
deepseek-ai/DeepSeek-R1-Turbo 40960 40960 - 1 1 1 3
deepseek-ai/DeepSeek-V3 163840 163840 - 0.32 0.32 0.32 0.89
deepseek-ai/DeepSeek-V3-0324 163840 163840 - 0.24 0.135 0.24 0.9
deepseek-ai/DeepSeek-V3.1 163840 163840 - 0.25 0.216 0.25 0.95
deepseek-ai/DeepSeek-V3.1-Terminus 163840 163840 - 0.27 0.216 0.27 1
deepseek-ai/DeepSeek-V3.2 163840 - s 0.26 0.13 0.26 0.38
deepseek-ai/DeepSeek-V4-Flash 1048576 - s 0.09 0.018 0.09 0.18
deepseek-ai/DeepSeek-V4-Flash-0731 1048576 - s 0.08 0.016 0.08 0.18
deepseek-ai/DeepSeek-V4-Pro 1048576 - s 1.3 0.1 1.3 2.6
deepseek-ai/DeepSeek-V4-Pro-0813 1048576 - s 1.3 0.1 1.3 2.6
deepseek-ai/DeepSeek-V4.1-Flash 1048576 131072 s 0.14 0.0042 0.14 0.42
deepseek-ai/DeepSeek-V4.1-Flash-1017 1048576 131072 s 0.14 0.0042 0.14 0.42
google/gemini-2.5-flash 1000000 1000000 s 0.3 0.3 0.3 2.5
google/gemini-2.5-pro 1000000 1000000 s 1.25 1.25 1.25 10
google/gemini-3.1-flash-lite 1000000 - s 0.25 0.25 0.25 1.5
google/gemini-3.1-pro 1000000 - s 2 2 2 12
google/gemini-3.5-flash 1000000 - s 1.5 1.5 1.5 9
google/gemini-3.7-flash 1000000 - s 0.75 0.75 0.75 3.75
google/gemma-3-12b-it 131072 131072 - 0.05 0.05 0.05 0.15
google/gemma-3-27b-it 131072 131072 - 0.08 0.08 0.08 0.16
google/gemma-3-4b-it 131072 131072 - 0.05 0.05 0.05 0.1
google/gemma-4-26B-A4B-it 262144 - s 0.07 0.07 0.07 0.34
google/gemma-4-31B-it 262144 - s 0.13 0.13 0.13 0.38
google/gemma-4-31B-it-Ultra 131072 - s 0.27 0.27 0.27 0.76
google/gemma-4-31B-it-turbo 262144 - - 0.09 0.05 0.09 0.34
google/gemma-4-E4B-it 131072 - - 0.02 0.02 0.02 0.1
inclusionAI/Ling-3.0-flash 131072 - s 0.06 0.012 0.06 0.18
meta-llama/Llama-3.2-11B-Vision-Instruct 131072 131072 - 0.049 0.049 0.049 0.049
meta-llama/Llama-3.2-3B-Instruct 131072 131072 - 0.02 0.02 0.02 0.02
meta-llama/Llama-3.3-70B-Instruct 131072 131072 - 0.23 0.23 0.23 0.4
meta-llama/Llama-3.3-70B-Instruct-Turbo 131072 131072 - 0.1 0.1 0.1 0.32
meta-llama/Llama-4-Maverick-17B-128E-Instruct-FP8 1048576 1048576 - 0.2 0.2 0.2 0.8
meta-llama/Llama-4-Scout-17B-16E-Instruct 327680 327680 - 0.1 0.1 0.1 0.3
meta-llama/Llama-Guard-3-8B 131072 131072 - 0.055 0.055 0.055 0.055
meta-llama/Llama-Guard-4-12B 163840 163840 - 0.18 0.18 0.18 0.18
meta-llama/Meta-Llama-3-8B-Instruct 8192 8192 - 0.03 0.03 0.03 0.06
meta-llama/Meta-Llama-3.1-70B-Instruct 131072 131072 - 0.4 0.4 0.4 0.4
meta-llama/Meta-Llama-3.1-70B-Instruct-Turbo 131072 131072 - 0.4 0.4 0.4 0.4
meta-llama/Meta-Llama-3.1-8B-Instruct 131072 131072 - 0.03 0.03 0.03 0.05
meta-llama/Meta-Llama-3.1-8B-Instruct-Turbo 131072 131072 - 0.02 0.02 0.02 0.04
meta-models/Muse-Glimmer-30B 131072 - s 0.3 0.04 0.3 1.2
microsoft/WizardLM-2-8x22B 65536 65536 - 0.48 0.48 0.48 0.48
microsoft/phi-4 16384 16384 - 0.07 0.07 0.07 0.14
mistralai/Mistral-Nemo-Instruct-2407 131072 131072 - 0.019 0.019 0.019 0.03
mistralai/Mistral-Small-24B-Instruct-2501 32768 32768 - 0.05 0.05 0.05 0.08
mistralai/Mistral-Small-3.2-24B-Instruct-2506 128000 128000 - 0.075 0.075 0.075 0.2
mistralai/Mixtral-8x7B-Instruct-v0.1 32768 32768 - 0.4 0.4 0.4 0.4
moonshotai/Kimi-K2-Instruct 131072 131072 - 0.5 0.5 0.5 2
moonshotai/Kimi-K2-Instruct-0905 262144 262144 - 0.5 0.4 0.5 2
moonshotai/Kimi-K2.5 262144 - s 0.45 0.07 0.45 2.25
moonshotai/Kimi-K2.6 262144 - s 0.75 0.15 0.75 3.5
moonshotai/Kimi-K2.7-Code 262144 - s 0.68 0.136 0.68 3.4
moonshotai/Kimi-K3 1048576 - s 2.85 0.285 2.85 14.25
nvidia/Llama-3.1-Nemotron-70B-Instruct 131072 131072 - 0.6 0.6 0.6 0.6
nvidia/Llama-3.3-Nemotron-Super-49B-v1.5 131072 131072 - 0.1 0.1 0.1 0.4
nvidia/NVIDIA-Nemotron-3-Super-120B-A12B 262144 - s 0.085 0.085 0.085 0.4
nvidia/NVIDIA-Nemotron-3-Ultra-550B-A55B 262144 - s 0.5 0.1 0.5 2.2
nvidia/NVIDIA-Nemotron-3.5-Lightning 262144 - - 0.08 0.04 0.08 0.2
nvidia/NVIDIA-Nemotron-Nano-9B-v2 131072 131072 - 0.04 0.04 0.04 0.16
nvidia/Nemotron-3-Nano-30B-A3B 262144 - - 0.05 0.025 0.05 0.2
nvidia/Nemotron-Content-Safety-3.5 131072 - - 0.2 0.2 0.2 0.2
openai/gpt-oss-120b 131072 131072 - 0.037 0.037 0.037 0.17
openai/gpt-oss-120b-Turbo 131072 - s 0.15 0.15 0.15 0.6
openai/gpt-oss-120b-Ultra 131072 - s 0.2 0.2 0.2 0.95
openai/gpt-oss-20b 131072 131072 - 0.03 0.03 0.03 0.14
stepfun-ai/Step-3.7-Flash 262144 - - 0.2 0.04 0.2 1.15
tencent/Hy3 262144 - s 0.14 0.035 0.14 0.58
thinkingmachines/Inkling 524288 - s 0.95 0.16 0.95 4.05
thinkingmachines/Inkling-Small 524288 - s 0.45 0.1 0.45 1.2
zai-org/GLM-4.5 131072 131072 - 0.4 0.4 0.4 1.6
zai-org/GLM-4.6 202752 - s 0.5 0.1 0.5 2
zai-org/GLM-4.7 202752 - s 0.4 0.08 0.4 1.75
zai-org/GLM-4.7-Flash 202752 - s 0.06 0.01 0.06 0.4
zai-org/GLM-5 202752 - s 0.6 0.12 0.6 2.08
zai-org/GLM-5.1 202752 - s 1.05 0.205 1.05 3.5
zai-org/GLM-5.2 1048576 - s 0.75 0.14 0.75 2.4
[cerebras]
gemma-4-31b 131072 40960 s 0.99 0.99 0.99 1.49
gpt-oss-120b 131072 32768 s 0.35 0.35 0.35 0.75
llama-3.3-70b 128000 128000 - 0.85 0.85 0.85 1.2
llama3.1-70b 128000 128000 - 0.6 0.6 0.6 0.6
llama3.1-8b 128000 128000 - 0.1 0.1 0.1 0.1
qwen-3-32b 128000 128000 - 0.4 0.4 0.4 0.8
qwen-3.8-27b 65536 32768 s 0.99 0.99 0.99 1.49
[moonshotai]
kimi-k2.5 262144 262144 s 0.6 0.1 0.6 3
kimi-k2.6 262144 262144 s 0.95 0.16 0.95 4
kimi-k2.7-code 262144 262144 s 0.95 0.19 0.95 4
kimi-k3 1048576 1048576 s 3 0.3 3 15
moonshot-v1-128k 131072 131072 s 2 2 2 5
moonshot-v1-128k-vision-preview 131072 131072 s 2 2 2 5
moonshot-v1-32k 32768 32768 s 1 1 1 3
moonshot-v1-32k-vision-preview 32768 32768 s 1 1 1 3
moonshot-v1-8k 8192 8192 s 0.2 0.2 0.2 2
moonshot-v1-8k-vision-preview 8192 8192 s 0.2 0.2 0.2 2
moonshot-v1-auto 131072 131072 s 2 2 2 5
[alibaba]
deepseek-v4-flash 1000000 393216 s 0.2 0.04 0.2 0.4
deepseek-v4-flash-0731 1000000 393216 s 0.2 0.04 0.2 0.4
deepseek-v4-pro 1000000 393216 s 2.4 0.2 2.4 4.8
glm-5.1 202745 131072 s 1.4 0.26 1.4 4.4
glm-5.2 1048576 131072 s 1.4 0.28 1.4 4.4
kimi-k2.7-code 229376 16384 s 0.95 0.19 0.95 4
qwen-coder 1000000 16384 - 0.3 0.3 0.3 1.5
qwen-flash 997952 32768 -
qwen-max 30720 8192 - 1.6 1.6 1.6 6.4
qwen-plus 129024 16384 - 0.4 0.4 0.4 1.2
qwen-plus-2025-01-25 129024 8192 - 0.4 0.4 0.4 1.2
qwen-plus-2025-04-28 129024 16384 -
qwen-plus-2025-07-14 129024 16384 -
qwen-plus-2025-07-28 997952 32768 -
qwen-plus-2025-09-11 997952 32768 -
qwen-plus-latest 997952 32768 -
qwen-turbo 129024 16384 -
qwen-turbo-2024-11-01 1000000 8192 - 0.05 0.05 0.05 0.2
qwen-turbo-2025-04-28 1000000 16384 -
qwen-turbo-latest 1000000 16384 -
qwen3-30b-a3b 129024 16384 -
qwen3-coder-flash 997952 65536 -
qwen3-coder-plus 997952 65536 -
qwen3-max 258048 65536 -
qwen3-max-preview 258048 65536 -
qwen3-next-80b-a3b-instruct 262144 65536 - 0.15 0.15 0.15 1.2
qwen3-next-80b-a3b-thinking 262144 65536 - 0.15 0.15 0.15 1.2
qwen3-vl-235b-a22b-instruct 131072 32768 - 0.4 0.4 0.4 1.6
qwen3-vl-235b-a22b-thinking 131072 32768 - 0.4 0.4 0.4 4
qwen3-vl-32b-instruct 131072 32768 - 0.16 0.16 0.16 0.64
qwen3-vl-32b-thinking 131072 32768 - 0.16 0.16 0.16 2.87
qwen3-vl-plus 260096 32768 -
qwen3.5-plus 991808 65536 -
qwen3.7-max 991808 65536 s 2.5 0.5 3.125 7.5
qwen3.7-plus 991808 65536 s
qwen3.8-flash 991808 131072 s 0.15 0.016 0.2 0.47
qwen3.8-max 991808 131072 s 2 0.25 2 6
qwen3.8-omni-flash 991808 131072 s 0.15 0.016 0.15 0.47
qwq-plus 98304 8192 - 0.8 0.8 0.8 2.4
[zai]
glm-4-32b-0414-128k 128000 32000 - 0.1 0.1 0.1 0.1
glm-4.5 128000 32000 - 0.6 0.6 0.6 2.2
glm-4.5-air 128000 32000 - 0.2 0.2 0.2 1.1
glm-4.5-airx 128000 32000 - 1.1 1.1 1.1 4.5
glm-4.5-flash 128000 32000 -
glm-4.5-x 128000 32000 - 2.2 2.2 2.2 8.9
glm-4.5v 128000 32000 - 0.6 0.6 0.6 1.8
glm-4.6 200000 128000 - 0.6 0.11 0 2.2
glm-4.7 200000 128000 - 0.6 0.11 0 2.2
glm-4.7-flash 200000 128000 -
glm-5 200000 128000 - 1 0.2 0 3.2
glm-5-code 200000 128000 - 1.2 0.3 0 5
glm-5.1 200000 128000 - 1.4 0.26 0 4.4
glm-5.2 1000000 128000 - 1.4 0.26 0 4.4
glm-5.3 1000000 128000 - 1.4 0.26 0 4.4
glm-5.3-flash 1048576 128000 - 0.15 0.03 0 0.5
[minimax]
MiniMax-M2 200000 8192 - 0.3 0.03 0.375 1.2
MiniMax-M2.1 1000000 8192 - 0.3 0.03 0.375 1.2
MiniMax-M2.1-lightning 1000000 8192 - 0.3 0.03 0.375 2.4
MiniMax-M2.5 1000000 8192 - 0.3 0.03 0.375 1.2
MiniMax-M2.5-lightning 1000000 8192 - 0.3 0.03 0.375 2.4
MiniMax-M3 1000000 128000 - 0.3 0.06 0.3 1.2 512000 0.6 0.12 0.6 2.4
[gateway]
alibaba/qwen-3-14b 40960 16384 - 0.08 0.08 0.08 0.24
alibaba/qwen-3-235b 40960 16384 - 0.2 0.2 0.2 0.6
alibaba/qwen-3-30b 40960 16384 - 0.1 0.1 0.1 0.3
alibaba/qwen-3-32b 40960 16384 - 0.1 0.1 0.1 0.3
alibaba/qwen3-coder 262144 66536 - 0.4 0.4 0.4 1.6
amazon/nova-lite 300000 8192 s 0.06 0.06 0.06 0.24
amazon/nova-micro 128000 8192 s 0.035 0.035 0.035 0.14
amazon/nova-pro 300000 8192 s 0.8 0.8 0.8 3.2
amazon/titan-embed-text-v2 - - -
anthropic/claude-3-5-sonnet 200000 8192 s 3 0.3 3.75 15
anthropic/claude-3-7-sonnet 200000 64000 s 3 0.3 3.75 15
anthropic/claude-3-haiku 200000 4096 s 0.25 0.03 0.3 1.25
anthropic/claude-3-opus 200000 4096 s 15 1.5 18.75 75
anthropic/claude-3.5-haiku 200000 8192 s 0.8 0.08 1 4
anthropic/claude-3.5-sonnet 200000 8192 s 3 0.3 3.75 15
anthropic/claude-3.7-sonnet 200000 64000 s 3 0.3 3.75 15
anthropic/claude-4-opus 200000 32000 s 15 1.5 18.75 75
anthropic/claude-4-sonnet 200000 64000 - 3 0.3 3.75 15
anthropic/claude-haiku-4.5 200000 64000 s 1 0.1 1.25 5
anthropic/claude-opus-4 200000 32000 s 15 1.5 18.75 75
anthropic/claude-opus-4.1 200000 32000 s 15 1.5 18.75 75
anthropic/claude-opus-4.5 200000 64000 s 5 0.5 6.25 25
anthropic/claude-opus-4.6 200000 64000 s 5 0.5 6.25 25
anthropic/claude-sonnet-4 200000 64000 s 3 0.3 3.75 15
anthropic/claude-sonnet-4.5 1000000 64000 - 3 0.3 3.75 15
cohere/command-a 256000 8000 s 2.5 2.5 2.5 10
cohere/command-r 128000 4096 - 0.15 0.15 0.15 0.6
cohere/command-r-plus 128000 4096 - 2.5 2.5 2.5 10
cohere/embed-v4.0 - - -
deepseek/deepseek-r1 128000 8192 - 0.55 0.55 0.55 2.19
deepseek/deepseek-r1-distill-llama-70b 131072 131072 s 0.75 0.75 0.75 0.99
deepseek/deepseek-v3 128000 8192 - 0.9 0.9 0.9 0.9
google/gemini-2.5-flash 1000000 65536 ds 0.3 0.03 0.3 2.5
google/gemini-2.5-pro 1048576 65536 ds 1.25 0.125 1.25 10 200000 2.5 0.25 2.5 15
google/gemma-2-9b 8192 8192 - 0.2 0.2 0.2 0.2
inception/mercury-coder-small 32000 16384 - 0.25 0.25 0.25 1
meta/llama-3-70b 8192 8192 - 0.59 0.59 0.59 0.79
meta/llama-3-8b 8192 8192 - 0.05 0.05 0.05 0.08
meta/llama-3.1-70b 128000 8192 - 0.72 0.72 0.72 0.72
meta/llama-3.1-8b 131000 131072 s 0.05 0.05 0.05 0.08
meta/llama-3.2-11b 128000 8192 - 0.16 0.16 0.16 0.16
meta/llama-3.2-1b 128000 8192 - 0.1 0.1 0.1 0.1
meta/llama-3.2-3b 128000 8192 s 0.15 0.15 0.15 0.15
meta/llama-3.2-90b 128000 8192 - 0.72 0.72 0.72 0.72
meta/llama-3.3-70b 128000 8192 - 0.72 0.72 0.72 0.72
meta/llama-4-maverick 131072 8192 - 0.2 0.2 0.2 0.6
meta/llama-4-scout 131072 8192 - 0.1 0.1 0.1 0.3
mistral/codestral 256000 4000 - 0.3 0.3 0.3 0.9
mistral/codestral-embed - - -
mistral/devstral-small 128000 128000 s 0.07 0.07 0.07 0.28
mistral/magistral-medium 128000 64000 s 2 2 2 5
mistral/magistral-small 128000 64000 - 0.5 0.5 0.5 1.5
mistral/ministral-3b 128000 4000 - 0.04 0.04 0.04 0.04
mistral/ministral-8b 128000 4000 - 0.1 0.1 0.1 0.1
mistral/mistral-embed - - -
mistral/mistral-large 32000 4000 - 2 2 2 6
mistral/mistral-saba-24b 32768 32768 - 0.79 0.79 0.79 0.79
mistral/mistral-small 32000 4000 s 0.1 0.1 0.1 0.3
mistral/mixtral-8x22b-instruct 65536 2048 - 1.2 1.2 1.2 1.2
mistral/pixtral-12b 128000 4000 s 0.15 0.15 0.15 0.15
mistral/pixtral-large 128000 4000 s 2 2 2 6
moonshotai/kimi-k2 131072 16384 - 0.55 0.55 0.55 2.2
morph/morph-v3-fast 32768 16384 - 0.8 0.8 0.8 1.2
morph/morph-v3-large 32768 16384 - 0.9 0.9 0.9 1.9
openai/gpt-3.5-turbo 16385 4096 - 0.5 0.5 0.5 1.5
openai/gpt-3.5-turbo-instruct 8192 4096 - 1.5 1.5 1.5 2
openai/gpt-4-turbo 128000 4096 - 10 10 10 30
openai/gpt-4.1 1047576 32768 s 2 0.5 0 8
openai/gpt-4.1-mini 1047576 32768 s 0.4 0.1 0 1.6
openai/gpt-4.1-nano 1047576 32768 s 0.1 0.025 0 0.4
openai/gpt-4o 128000 16384 s 2.5 1.25 0 10
openai/gpt-4o-mini 128000 16384 s 0.15 0.075 0 0.6
openai/o1 200000 100000 s 15 7.5 0 60
openai/o3 200000 100000 s 2 0.5 0 8
openai/o3-mini 200000 100000 s 1.1 0.55 0 4.4
openai/o4-mini 200000 100000 s 1.1 0.275 0 4.4
perplexity/sonar 127000 8000 - 1 1 1 1
perplexity/sonar-pro 200000 8000 - 3 3 3 15
perplexity/sonar-reasoning 127000 8000 - 1 1 1 5
perplexity/sonar-reasoning-pro 127000 8000 - 2 2 2 8
vercel/v0-1.0-md 128000 32000 - 3 3 3 15
vercel/v0-1.5-md 128000 32768 - 3 3 3 15
xai/grok-2 131072 4000 - 2 2 2 10
xai/grok-2-vision 32768 32768 - 2 2 2 10
xai/grok-3 131072 131072 - 3 3 3 15
xai/grok-3-fast 131072 131072 - 5 5 5 25
xai/grok-3-mini 131072 131072 - 0.3 0.3 0.3 0.5
xai/grok-3-mini-fast 131072 131072 - 0.6 0.6 0.6 4
xai/grok-4 256000 256000 - 3 3 3 15
zai/glm-4.5 131072 131072 - 0.6 0.6 0.6 2.2
zai/glm-4.5-air 128000 96000 - 0.2 0.2 0.2 1.1
zai/glm-4.6 200000 200000 - 0.45 0.11 0.45 1.8
`;
