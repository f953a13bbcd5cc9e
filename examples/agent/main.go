// Command agent is the default agent of the wasm adapter: what an agent of that
// adapter without a module of its own runs.
//
//	make agent   # builds it into adapter/wasm/agent.wasm.gz
//
// It takes its issue and works on it in seven steps: classify, route, assemble,
// call (with tools, again and again), score, learn. Skills are SKILL.md texts of
// the company; models are asked by the gateway of its node, which pays from the
// agent's budget. Its environment:
//
//	AGENT_MODEL                     the model, whatever the task
//	AGENT_MODEL_FREE, _STANDARD, _PREMIUM, _ELITE   the model of a tier; else tier/free … where
//	                                an upstream answers to that name, else any that there is
//	AGENT_EMBED_MODEL               the model that embeds what it keeps; else the first whose
//	                                name has "embed" in it; else it looks for words alone
//	AGENT_PROMPT                    added to its instructions
//	AGENT_MAX_TOKENS                of one answer; 1024
//	AGENT_TOOLS                     the tools that the model is offered, comma separated, or none;
//	                                else all. A small model does better with none
//	AGENT_ANSWER_STATUS             where an issue goes when the model ends in words and not by
//	                                the tool finish: in_review (default) or done
//	AGENT_DEMO                      1: no model is asked; the agent reports what it sees in
//	                                its company and closes the issue
package main

import (
	"fmt"
	"os"

	"github.com/selvage-mesh/selvage/examples/wasmkit"
)

func main() {
	if err := work(wasmkit.Call, os.Getenv, fmt.Println); err != nil {
		fmt.Fprintln(os.Stderr, "agent:", err)
		os.Exit(1)
	}
}
