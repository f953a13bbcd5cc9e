package mcp

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Words of a pick that are not groups.
const (
	pickAll      = "all"
	pickContract = "contract"
)

// companies is the tool that lists companies, where a caller who is not an agent starts.
const companies = "selvageGetCompanies"

// A Pick selects the tools that a client lists. It limits what a model has to read and
// is not a permission: every tool can be called by name.
type Pick struct {
	names map[string]bool // nil: all
	finds bool            // includes the tools that find and call others
}

// NewPick parses a list of words separated by commas: names of groups of tools,
// "contract" for the contract's tools, "all" for all. Without words it is the contract's
// tools and the list of companies. Every pick includes the tools that find and call
// others, except "contract" alone, which is exactly the contract.
func NewPick(tools []*Tool, words string) (Pick, error) {
	p, groups := Pick{names: map[string]bool{}, finds: true}, map[string]bool{}
	for word := range strings.SplitSeq(words, ",") {
		if word = strings.TrimSpace(word); word != "" {
			groups[word] = true
		}
	}
	if groups[pickAll] {
		p.names = nil
	}
	if len(groups) == 0 {
		groups[pickContract], p.names[companies] = true, true
	} else {
		p.finds = len(groups) > 1 || !groups[pickContract]
	}
	if p.names != nil {
		for _, t := range tools {
			if groups[t.Group] || groups[pickContract] && strings.HasPrefix(t.Name, ofContract) || p.finds && t.finds {
				p.names[t.Name] = true
			}
		}
	}
	known := Groups(tools)
	for _, word := range slices.Sorted(maps.Keys(groups)) {
		if word != pickAll && word != pickContract && !slices.Contains(known, word) {
			return Pick{}, fmt.Errorf("tools: there is no group %q; give %s, %s, or some of %s",
				cut(word), pickAll, pickContract, strings.Join(known, ","))
		}
	}
	return p, nil
}

// cut bounds the part of a client's word that an error repeats.
func cut(word string) string { return strings.ToValidUTF8(word[:min(len(word), maxToolName)], "") }

// Groups returns the names of the groups of tools.
func Groups(tools []*Tool) []string {
	var names []string
	for _, t := range tools {
		if t.Group != "" {
			names = append(names, t.Group)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (p Pick) has(name string) bool { return p.names == nil || p.names[name] }

// instructions is the text about its tools that a model reads first.
func (p Pick) instructions() string {
	var b strings.Builder
	if p.has(ofContract + "InboxLite") {
		b.WriteString("Tools named paperclip… are the usual work of an agent; an agent starts with paperclipInboxLite. " +
			"They answer a refusal with the members error and status. ")
	}
	if p.has(companies) {
		b.WriteString("A person starts with " + companies + ". ")
	}
	if p.finds {
		b.WriteString("More tools than are listed reach the rest of the API: " + findTool + " finds them, " + callTool +
			" calls them. ")
	}
	b.WriteString("Read a refusal: it says what may be done instead.")
	return b.String()
}
