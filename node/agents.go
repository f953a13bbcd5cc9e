package node

import (
	"strings"

	"github.com/selvage-mesh/selvage/adapter/acp"
	"github.com/selvage-mesh/selvage/adapter/claude"
	"github.com/selvage-mesh/selvage/adapter/cli"
	"github.com/selvage-mesh/selvage/adapter/codex"
	"github.com/selvage-mesh/selvage/adapter/cursor"
	"github.com/selvage-mesh/selvage/adapter/gemini"
	"github.com/selvage-mesh/selvage/adapter/hermes"
	"github.com/selvage-mesh/selvage/adapter/openclaw"
	"github.com/selvage-mesh/selvage/adapter/opencode"
	"github.com/selvage-mesh/selvage/adapter/pi"
	"github.com/selvage-mesh/selvage/adapter/process"
	"github.com/selvage-mesh/selvage/api/skills"
	"github.com/selvage-mesh/selvage/company"
	"github.com/selvage-mesh/selvage/company/skill"
	"github.com/selvage-mesh/selvage/ledger"
	"github.com/selvage-mesh/selvage/scheduler"
)

// tools are the command-line tools that work as agents, by adapter type.
var tools = map[string]cli.Tool{"acp": acp.Tool{}, "claude_local": claude.Tool{}, "codex_local": codex.Tool{},
	"cursor": cursor.Tool{}, "gemini_local": gemini.Tool{},
	"hermes_local": hermes.Tool{}, "opencode_local": opencode.Tool{}, "pi_local": pi.Tool{}}

// addTools adds an adapter for each tool, which starts its program through p, and the
// adapter of OpenClaw gateways, and kernel, which hands tasks to a mesh.
func (n *Node) addTools(adapters map[string]scheduler.Adapter, p *process.Adapter, dir string,
	kernel scheduler.Adapter) error {
	claw, err := openclaw.New(openclaw.Config{Dir: dir, Private: n.conf.Private, Wall: n.conf.Wall, Log: n.log})
	if err != nil {
		return err
	}
	adapters["openclaw_gateway"] = claw
	adapters["weftos"] = kernel
	for kind, tool := range tools {
		a, err := cli.New(cli.Config{Process: p, Dir: dir}, tool)
		if err != nil {
			return err
		}
		adapters[kind] = a
	}
	return nil
}

// commonSkill is the skill that every agent gets: how to work with the API.
const commonSkill = "paperclip"

// maxRunSkills bounds the skills of one run, maxSkillBytes their texts in total: they
// are read and written again for each run.
const (
	maxRunSkills  = 64
	maxSkillBytes = 4 << 20
)

// runSkills returns the skills of an agent's run: the common one and those of the agent.
func runSkills(tx *ledger.Tx, of ledger.CompanyID, agent string) (out []company.RunSkill) {
	bytes := 0
	add := func(s company.RunSkill) {
		size := 0
		for path, text := range s.Files {
			size += len(path) + len(text)
		}
		if len(out) < maxRunSkills && bytes+size <= maxSkillBytes {
			out, bytes = append(out, s), bytes+size
		}
	}
	bundled := func(name string) {
		if s, ok := skills.Find(name); ok {
			add(company.RunSkill{Name: s.Name, Files: map[string]string{skill.SkillFile: s.Markdown}})
		}
	}
	bundled(commonSkill)
	for _, key := range skill.SkillsOfAgent(tx, of, agent) {
		s, own := skill.SkillOf(tx, of, key)
		if !own {
			if name := key[strings.LastIndexByte(key, '/')+1:]; name != commonSkill {
				bundled(name)
			}
			continue
		}
		files := map[string]string{}
		for _, f := range s.Files {
			files[f.Path], _ = skill.SkillText(tx, s, f.Path)
		}
		add(company.RunSkill{Name: s.Slug, Files: files})
	}
	return out
}
