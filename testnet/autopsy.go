package testnet

import (
	"bytes"
	"cmp"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"syscall"
)

// dumpMark is what a Go program says first when SIGQUIT ends it.
const dumpMark = "SIGQUIT: quit"

// autopsy ends every node that still runs with SIGQUIT, so that its log ends with
// the stacks of its goroutines.
func (p *Processes) autopsy() {
	for i := range p.Nodes {
		if n := &p.Nodes[i]; p.alive(n) {
			_ = syscall.Kill(n.PID, syscall.SIGCONT)
			_ = syscall.Kill(n.PID, syscall.SIGQUIT)
		}
	}
	for i := range p.Nodes {
		_ = p.waitGone(&p.Nodes[i], stopTimeout) // Down tells who does not go
	}
}

// lastWords is what a node's log says that is worth reading after a failed test: its
// beginning, its end, and what its goroutines waited for.
func lastWords(file string) string {
	b, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	said, dump, _ := bytes.Cut(b, []byte(dumpMark))
	said = answered.ReplaceAll(said, nil)
	if len(said) > shownLog {
		said = slices.Concat(said[:shownLog/4], []byte("\n[...]\n"), said[len(said)-shownLog*3/4:])
	}
	return string(said) + stacks(string(dump))
}

// answered is a line that tells of a request that went well.
var answered = regexp.MustCompile(`(?m)^.*"level":"INFO","msg":"request".*\n`)

// frame is the line of a dump that names a function, without its arguments.
var frame = regexp.MustCompile(`(?m)^(created by )?([\w./*()\[\]-]+?)(\([^()]*\)| in goroutine \d+)$`)

// stacks are the goroutines of a dump that run code of this module, those with the
// same stack as one.
func stacks(dump string) string {
	count, order := map[string]int{}, []string{}
	for g := range strings.SplitSeq(dump, "\n\n") {
		head, body, _ := strings.Cut(g, "\n")
		_, state, ok := strings.Cut(head, " [")
		if !ok || !strings.HasPrefix(head, "goroutine ") {
			continue
		}
		state, _, _ = strings.Cut(strings.TrimRight(state, "]:"), ",") // not for how long
		text := "[" + state + "]"
		if !strings.Contains("\n"+body, "\ngithub.com/selvage-mesh/selvage/") {
			continue
		}
		shown := 0
		for _, m := range frame.FindAllStringSubmatch(body, -1) {
			if name := m[2]; !strings.HasPrefix(name, "runtime.") && !strings.HasPrefix(name, "sync.") && shown < shownFrames {
				text += " < " + name[strings.LastIndexByte(name, '/')+1:]
				shown++
			}
		}
		if count[text]++; count[text] == 1 {
			order = append(order, text)
		}
	}
	slices.SortStableFunc(order, func(a, b string) int { return cmp.Compare(count[a], count[b]) })
	var out strings.Builder
	for _, text := range order {
		if out.Len() > shownStacks {
			out.WriteString("[...]\n")
			break
		}
		fmt.Fprintf(&out, "%d goroutines: %s\n", count[text], text)
	}
	return out.String()
}
