package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"
)

// Names of the tools that find and call unlisted tools.
const (
	findTool = "selvageFindTools"
	callTool = "selvageCallTool"
)

// finders are the two tools by which a model uses tools that its client does not list.
// The servers have no sessions, so the list of a session can not grow.
func finders(tools []*Tool) []*Tool {
	byName := make(map[string]*Tool, len(tools))
	for _, t := range tools {
		byName[t.Name] = t
	}
	groups := Groups(tools)
	find := &Tool{Name: findTool, ReadOnly: true, finds: true,
		Description: fmt.Sprintf("Find tools that are not listed, %d in all, by words such as \"budget of an agent\". The "+
			"answer has their names and "+
			"arguments; %s calls them. With group instead of query it lists a group: %s.", len(tools), callTool,
			strings.Join(groups, ", ")),
		Args: []Arg{{Name: "query"}, {Name: "group"}, {Name: "limit"}},
		Schema: encode(map[string]any{"type": "object", "properties": map[string]any{
			"query": map[string]any{"type": "string", "maxLength": maxQuery,
				"description": "What the tool shall do, in a few English words."},
			"group": map[string]any{"type": "string", "description": "Only tools of this group."},
			"limit": map[string]any{"type": "integer", "minimum": 1, "maximum": maxFound,
				"description": fmt.Sprintf("At most so many with their arguments; %d unless given.", defaultFound)},
		}}),
	}
	index := newIndex(tools)
	find.run = func(_ context.Context, _ *Caller, _ *Tool, args Arguments) (json.RawMessage, error) {
		return index.answer(args, groups)
	}
	call := &Tool{Name: callTool, finds: true,
		Description: "Call a tool by its name, also one that is not listed. " + findTool + " tells names and arguments.",
		Args:        []Arg{{Name: "name", Required: true}, {Name: "arguments"}},
		Schema: encode(map[string]any{"type": "object", "required": []string{"name"}, "properties": map[string]any{
			"name":      map[string]any{"type": "string", "description": "Such as " + companies + "."},
			"arguments": map[string]any{"type": "object", "description": "What the tool takes, as its inputSchema says."},
		}}),
	}
	call.run = func(ctx context.Context, c *Caller, _ *Tool, args Arguments) (json.RawMessage, error) {
		name := args.text("name")
		t := byName[name]
		if t == nil {
			return nil, badArgument{fmt.Sprintf("name: there is no tool %q; %s finds names", cut(name), findTool)}
		}
		theirs := Arguments{}
		if b := args["arguments"]; len(b) > 0 && json.Unmarshal(b, &theirs) != nil {
			return nil, badArgument{"arguments: expected an object, such as {\"companyId\": \"…\"}"}
		}
		return t.call(ctx, c, theirs)
	}
	return []*Tool{find, call}
}

// An index finds tools by words.
type index struct {
	tools []*Tool
	words []map[string]float64 // weight of each word of a tool
	long  []float64            // penalty of each tool for a long name
	rare  map[string]float64   // weight of a word, higher if fewer tools have it
}

// Weights of a word by the field that it is in.
const (
	inName      = 3
	inSentence  = 2
	inArgument  = 1
	startsAlike = 0.5 // for a word that only has a common beginning with the query's
	alikeLetter = 4   // of at least so many letters
	perWord     = 0.1 // for each word of the name, against long names that match by chance
)

func newIndex(tools []*Tool) *index {
	x := &index{tools: tools, rare: map[string]float64{}}
	for _, t := range tools {
		words := map[string]float64{}
		note := func(text string, weight float64) {
			for _, w := range wordsOf(text) {
				words[w] = max(words[w], weight)
			}
		}
		note(strings.TrimPrefix(strings.TrimPrefix(t.Name, ofContract), "selvage"), inName)
		note(t.Group, inName)
		note(t.Description, inSentence)
		for _, a := range t.Args {
			note(a.Name, inArgument)
		}
		x.words = append(x.words, words)
		x.long = append(x.long, 1+perWord*float64(len(wordsOf(t.Name))))
		for w := range words {
			x.rare[w]++
		}
	}
	for w, n := range x.rare {
		x.rare[w] = math.Log(1 + float64(len(tools))/n)
	}
	return x
}

// find returns the tools of a group ("" for any) that match words of a query, the best
// first. A query without words returns the whole group.
func (x *index) find(query, group string) []*Tool {
	asked := wordsOf(query)
	type hit struct {
		tool  *Tool
		score float64
	}
	var hits []hit
	for n, t := range x.tools {
		if group != "" && t.Group != group {
			continue
		}
		score := 0.0
		for _, w := range asked {
			score += x.score(w, x.words[n])
		}
		if score > 0 || len(asked) == 0 {
			hits = append(hits, hit{t, score / x.long[n]})
		}
	}
	slices.SortStableFunc(hits, func(a, b hit) int {
		return cmp.Or(cmp.Compare(b.score, a.score), harm(a.tool)-harm(b.tool))
	})
	out := make([]*Tool, len(hits))
	for n, h := range hits {
		out[n] = h.tool
	}
	return out
}

// harm ranks equally good tools: those that only read before those that make changes.
func harm(t *Tool) int {
	if t.ReadOnly {
		return 0
	}
	return 1
}

// score rates how well a word of a query matches the words of a tool.
func (x *index) score(asked string, words map[string]float64) (best float64) {
	if weight := words[asked]; weight > 0 {
		return weight * x.rare[asked]
	}
	if len(asked) < alikeLetter {
		return 0
	}
	for w, weight := range words {
		if len(w) >= alikeLetter && (strings.HasPrefix(w, asked) || strings.HasPrefix(asked, w)) {
			best = max(best, startsAlike*weight*x.rare[w])
		}
	}
	return best
}

// found is a tool in an answer to a model.
type found struct {
	Name     string          `json:"name"`
	About    string          `json:"description"`
	Group    string          `json:"group,omitempty"`
	ReadOnly bool            `json:"readOnly"`
	Schema   json.RawMessage `json:"inputSchema"`
}

// answer is the answer of the finding tool: a few tools with their arguments, and the
// names of others.
func (x *index) answer(args Arguments, groups []string) (json.RawMessage, error) {
	query, group, limit := args.text("query"), args.text("group"), defaultFound
	switch {
	case len(query) > maxQuery:
		return nil, badArgument{fmt.Sprintf("query: at most %d bytes, has %d", maxQuery, len(query))}
	case query == "" && group == "":
		return nil, badArgument{"query: give some words, or a group"}
	case group != "" && !slices.Contains(groups, group):
		return nil, badArgument{fmt.Sprintf("group: there is no %q; give one of %s", cut(group), strings.Join(groups, ", "))}
	}
	if text := args.text("limit"); text != "" {
		if json.Unmarshal([]byte(text), &limit) != nil || limit < 1 || limit > maxFound {
			return nil, badArgument{fmt.Sprintf("limit: a whole number from 1 to %d", maxFound)}
		}
	}
	all := x.find(query, group)
	out := struct {
		Tools []found  `json:"tools"`
		More  []string `json:"moreNames,omitempty"`
		Hint  string   `json:"hint,omitempty"`
	}{Tools: []found{}}
	for _, t := range all[:min(limit, len(all))] {
		out.Tools = append(out.Tools, found{t.Name, t.Description, t.Group, t.ReadOnly, t.Schema})
	}
	for _, t := range all[len(out.Tools):min(len(all), len(out.Tools)+maxNames)] {
		out.More = append(out.More, t.Name)
	}
	if len(all) == 0 {
		out.Hint = "No tool has these words. Try others, or a group: " + strings.Join(groups, ", ")
	}
	return json.Marshal(out)
}

// wordsOf returns the words of a text for comparison: camel case split, in lower case,
// without a plural s, synonymous verbs mapped to one, stop words removed, no duplicates.
func wordsOf(text string) (words []string) {
	var b strings.Builder
	end := func() {
		if w := b.String(); w != "" {
			words = append(words, stem(w))
		}
		b.Reset()
	}
	small := false // the previous letter was lower case
	for _, c := range text {
		if !unicode.IsLetter(c) && !unicode.IsDigit(c) {
			end()
			small = false
			continue
		}
		if unicode.IsUpper(c) && small {
			end()
		}
		small = unicode.IsLower(c)
		b.WriteRune(unicode.ToLower(c))
	}
	end()
	words = slices.DeleteFunc(words, func(w string) bool { return w == "" })
	slices.Sort(words)
	return slices.Compact(words)
}

// verbs maps synonymous verbs to one, and stop words to nothing.
var verbs = map[string]string{
	"create": "create", "make": "create", "add": "create", "new": "create", "post": "create",
	"delete": "delete", "remove": "delete", "read": "get", "get": "get", "show": "get", "list": "get", "see": "get",
	"view":   "get",
	"update": "change", "change": "change", "edit": "change", "set": "change", "patch": "change", "put": "change",
	"a": "", "an": "", "the": "", "of": "", "to": "", "for": "", "in": "", "on": "", "and": "", "or": "", "with": "",
	"by": "", "i": "", "api": "",
	"is": "", "it": "", "that": "", "how": "", "what": "", "which": "", "my": "", "all": "", "id": "",
}

func stem(w string) string {
	if verb, known := verbs[w]; known {
		return verb
	}
	switch {
	case strings.HasSuffix(w, "ies") && len(w) > 4:
		return w[:len(w)-3] + "y"
	case strings.HasSuffix(w, "s") && !strings.HasSuffix(w, "ss") && !strings.HasSuffix(w, "us") && len(w) > 3:
		return w[:len(w)-1]
	}
	return w
}
