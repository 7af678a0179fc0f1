"""OpenCode: the server in its configuration; it has no hooks but plugins, so a small one of ours tells `nudge record`
what happens."""

from __future__ import annotations

import json
import os

from nudge.clients.launch import NAME, Launch
from nudge.clients.place import XDG, Place
from nudge.clients.targets import JsonFile, Target, WholeFile
from nudge.clients.wiring import Wiring
from nudge.limits import CLIENT_HOOK_TIMEOUT

_CONFIGS = ("opencode.jsonc", "opencode.json")
_MARK = "// nudge: "

# In the words of Claude Code's hooks. A subagent's session is told as part of the one that started it.
_PLUGIN = (
    _MARK
    + """written by `nudge connect opencode`, removed by `nudge disconnect opencode`.
import { spawn } from "node:child_process"

const NUDGE = @executable@
const PATIENCE = @patience@ // milliseconds

function record(event) {
  return new Promise((resolve) => {
    let said = ""
    const done = () => resolve(said)
    try {
      const child = spawn(NUDGE, ["record"], { stdio: ["pipe", "pipe", "ignore"], timeout: PATIENCE })
      child.on("error", done)
      child.on("close", done)
      child.stdout.on("data", (text) => (said += text))
      child.stdin.on("error", () => {})
      child.stdin.end(JSON.stringify(event))
    } catch {
      done() // Nudge is not installed any more
    }
  })
}

export const Nudge = async ({ directory }) => {
  const parents = new Map() // a subagent's session: the session that started it
  const beginnings = new Map() // a session: what Nudge told at its start
  const prompts = new Map() // a session: its latest prompt

  const tell = (session, name, facts) =>
    record({
      client: "opencode",
      hook_event_name: name,
      cwd: directory,
      session_id: parents.get(session) ?? session,
      agent_id: parents.has(session) ? session : null,
      prompt_id: prompts.get(parents.get(session) ?? session),
      ...facts,
    })
  const begin = (session, source) => beginnings.set(session, tell(session, "SessionStart", { source }))

  return {
    event: async ({ event }) => {
      const session = event.properties?.sessionID ?? event.properties?.info?.id
      const parent = event.properties?.info?.parentID
      if (event.type === "session.created" && parent) parents.set(session, parents.get(parent) ?? parent)
      else if (event.type === "session.created" && !beginnings.has(session)) begin(session, "startup")
      else if (event.type === "session.deleted" && beginnings.delete(session)) await tell(session, "SessionEnd", { reason: "other" })
      else if (event.type === "session.compacted" && !parents.has(session)) {
        await tell(session, "PostCompact", { trigger: "auto" })
        begin(session, "compact")
      }
    },
    "chat.message": async (input, output) => {
      const session = input.sessionID
      if (parents.has(session)) return
      if (!beginnings.has(session)) begin(session, "resume")
      const written = output.parts.filter((part) => part.type === "text" && !part.synthetic)
      const prompt = written.map((part) => part.text).join("\\n")
      prompts.set(session, output.message?.id ?? input.messageID)
      await beginnings.get(session)
      if (prompt) await tell(session, "UserPromptSubmit", { prompt })
    },
    "tool.execute.after": async (input, output) => {
      const mcp = input.tool.startsWith("nudge_")
      await tell(input.sessionID, "PostToolUse", {
        tool_name: mcp ? input.tool.replace("nudge_", "mcp__nudge__") : input.tool,
        tool_input: input.args,
        tool_response: { output: output?.output, exit_code: output?.metadata?.exit },
        tool_use_id: input.callID,
      })
    },
    "experimental.chat.system.transform": async (input, output) => {
      const context = await beginnings.get(input.sessionID)
      if (context) output.system.push(context)
    },
    dispose: async () => {
      await Promise.all([...beginnings.keys()].map((session) => tell(session, "SessionEnd", { reason: "other" })))
    },
  }
}
"""
)


def _targets(place: Place, launch: Launch) -> list[Target]:
    home = os.path.join(place.directory(XDG, ".config"), "opencode")
    candidates = [os.path.join(home, name) for name in _CONFIGS]
    config = next(filter(os.path.exists, candidates), candidates[-1])
    return [
        JsonFile(config, ("mcp", NAME), {"type": "local", "command": launch.server, "enabled": True}),
        WholeFile(os.path.join(home, "plugin", "nudge.js"), _plugin(launch), _MARK),
    ]


def _plugin(launch: Launch) -> str:
    milliseconds = CLIENT_HOOK_TIMEOUT * 1000
    return _PLUGIN.replace("@executable@", json.dumps(launch.executable)).replace("@patience@", str(milliseconds))


WIRING = Wiring("opencode", "OpenCode", "opencode", _targets)
