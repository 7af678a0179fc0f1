"""OpenCode: the server in its configuration. It has no hooks but plugins: a small one of ours sends its events to
`nudge record`, in the words of Claude Code's hooks, and gives the model what that prints. Events as seen with 1.18.33.
"""

from __future__ import annotations

import json
import os

from nudge.clients.client import NAME, TOOLS, AgentClient, Home
from nudge.core import limits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from nudge.clients.config_files import ConfigFile
    from nudge.clients.executable import Executable

_CONFIGS = ("opencode.jsonc", "opencode.json")
_MARK = "// nudge: "

# A subagent's session is recorded as part of the session that started it.
_PLUGIN = (
    _MARK
    + """written by `nudge connect opencode`, removed by `nudge disconnect opencode`.
import { spawn } from "node:child_process"

const NUDGE = @executable@
const TIMEOUT = @timeout@ // milliseconds

function record(event) {
  return new Promise((resolve) => {
    let output = ""
    const done = () => resolve(output)
    try {
      const child = spawn(NUDGE, ["record"], { stdio: ["pipe", "pipe", "ignore"], timeout: TIMEOUT })
      child.on("error", done)
      child.on("close", done)
      child.stdout.on("data", (text) => (output += text))
      child.stdin.on("error", () => {})
      child.stdin.end(JSON.stringify(event))
    } catch {
      done() // Nudge is not installed any more
    }
  })
}

export const Nudge = async ({ directory }) => {
  const parents = new Map() // a subagent's session: the session that started it
  const contexts = new Map() // a session: what Nudge printed at its start
  const prompts = new Map() // a session: its latest prompt
  const words = new Map() // a session: what its assistant said last, after it had done something
  const acted = new Set() // sessions that did something since

  const send = (session, name, fields) =>
    record({
      client: "opencode",
      hook_event_name: name,
      cwd: directory,
      session_id: parents.get(session) ?? session,
      agent_id: parents.has(session) ? session : null,
      prompt_id: prompts.get(parents.get(session) ?? session),
      ...fields,
    })
  const end = (session) =>
    send(session, "SessionEnd", { reason: "other", last_assistant_message: words.get(session) })
  const sendTool = (session, name, tool, call, fields) =>
    send(session, name, {
      tool_name: tool.startsWith("nudge_") ? tool.replace("nudge_", "mcp__nudge__") : tool,
      tool_use_id: call,
      ...fields,
    })
  const begin = (session, source) => contexts.set(session, send(session, "SessionStart", { source }))

  return {
    event: async ({ event }) => {
      const session = event.properties?.sessionID ?? event.properties?.info?.id
      const parent = event.properties?.info?.parentID
      if (event.type === "session.created" && parent) parents.set(session, parents.get(parent) ?? parent)
      else if (event.type === "session.created" && !contexts.has(session)) begin(session, "startup")
      else if (event.type === "session.deleted" && contexts.delete(session)) await end(session)
      else if (event.type === "session.compacted" && !parents.has(session)) {
        await send(session, "PostCompact", { trigger: "auto" })
        begin(session, "compact")
      } else if (event.type === "message.part.updated") {
        const part = event.properties.part
        if (part?.type === "tool") acted.add(session)
        const isSaid = part?.type === "text" && part.time?.end // a prompt has no end
        if (isSaid && (acted.delete(session) || !words.has(session))) words.set(session, part.text)
        const failed = part?.type === "tool" && part.state?.status === "error" // without tool.execute.after
        if (failed) {
          const { input, error } = part.state
          await sendTool(session, "PostToolUseFailure", part.tool, part.callID, { tool_input: input, error })
        }
      }
    },
    "chat.message": async (input, output) => {
      const session = input.sessionID
      if (parents.has(session)) return
      if (!contexts.has(session)) begin(session, "resume")
      const typed = output.parts.filter((part) => part.type === "text" && !part.synthetic)
      const prompt = typed.map((part) => part.text).join("\\n")
      prompts.set(session, output.message?.id ?? input.messageID)
      await contexts.get(session)
      if (!prompt) return
      const answer = (await send(session, "UserPromptSubmit", { prompt })).trim()
      const last = typed.at(-1) // parts are ordered by their ids
      if (answer && last.id) output.parts.push({ ...last, id: `${last.id}n`, text: answer, synthetic: true })
    },
    "tool.execute.after": async (input, output) => {
      const answer = await sendTool(input.sessionID, "PostToolUse", input.tool, input.callID, {
        tool_input: input.args,
        tool_response: { output: output?.output, exit_code: output?.metadata?.exit },
      })
      if (answer && typeof output?.output === "string") output.output += `\\n${answer.trim()}`
    },
    "experimental.chat.system.transform": async (input, output) => {
      const context = await contexts.get(input.sessionID)
      if (context) output.system.push(context)
    },
    dispose: async () => {
      await Promise.all([...contexts.keys()].map(end))
    },
  }
}
"""
)


class OpenCode(AgentClient):
    name = "opencode"
    title = "OpenCode"
    command = "opencode"
    shell_variables = ("OPENCODE",)
    folder = ".config/opencode"
    instructions = (("AGENTS.md", "CLAUDE.md"),)
    home_variable = "XDG_CONFIG_HOME"
    tools: Mapping[str, str] = {**TOOLS, "apply_patch": "patch"}
    arguments: Mapping[str, str] = {"filePath": "file_path", "patchText": "patch"}

    def hook_output(self, text: str, event: str) -> str:
        """Return the text as it is: the plugin puts it where the model reads it."""
        del event
        return text

    def directory(self, home: Home) -> str:
        return os.path.join(home.variable(self.home_variable) or os.path.join(home.path, ".config"), "opencode")

    def config_files(self, home: Home, executable: Executable) -> list[ConfigFile]:
        from nudge.clients.config_files import JsonFile, WholeFile

        folder = self.directory(home)
        candidates = [os.path.join(folder, name) for name in _CONFIGS]
        config = next(filter(os.path.exists, candidates), candidates[-1])
        server = {"type": "local", "command": executable.server, "enabled": True}
        return [
            JsonFile(config, ("mcp", NAME), server),
            WholeFile(os.path.join(folder, "plugin", "nudge.js"), plugin_text(executable), _MARK),
        ]


def plugin_text(executable: Executable) -> str:
    milliseconds = str(limits.CLIENT_HOOK_TIMEOUT * 1000)
    return _PLUGIN.replace("@executable@", json.dumps(executable.path)).replace("@timeout@", milliseconds)


CLIENT = OpenCode()
