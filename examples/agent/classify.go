package main

import (
	"slices"
	"strings"
	"unicode"
)

// A Profile is what a task seems to be.
type Profile struct {
	Type       string   `json:"task_type"`
	Complexity float64  `json:"complexity"` // 0 to 1
	Keywords   []string `json:"keywords"`
}

// kinds are looked through in this order; the first with the most hits counts.
var kinds = []struct {
	name  string
	words []string
	base  float64 // complexity of a short task of the kind
}{
	{"CodeReview", []string{"review", "pr", "diff", "audit", "vulnerability", "lint"}, 0.45},
	{"CodeGeneration", []string{"implement", "code", "function", "refactor", "bug", "fix", "compile", "test", "script", "program", "class"}, 0.5},
	{"Research", []string{"research", "find", "compare", "survey", "sources", "investigate", "market"}, 0.4},
	{"Analysis", []string{"analyse", "analyze", "analysis", "metrics", "data", "explain", "why", "cause", "report", "estimate"}, 0.45},
	{"Creative", []string{"write", "story", "slogan", "name", "design", "draft", "blog", "poem", "announcement"}, 0.3},
	{"ToolUse", []string{"run", "execute", "deploy", "create", "assign", "split", "delegate", "schedule", "issue", "issues"}, 0.35},
	{"Chat", []string{"hello", "hi", "thanks", "question", "answer", "say", "tell"}, 0.1},
}

// hard are words that make a task harder than its length shows.
var hard = []string{"architecture", "security", "concurrency", "distributed", "prove", "optimise", "optimize", "migrate", "strategy", "legal", "design"}

// maxKeywords bounds what is kept of a task's words.
const maxKeywords = 12

// classify looks at the words of a task.
func classify(text string) Profile {
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	p := Profile{Type: "Unknown", Complexity: 0.2, Keywords: []string{}}
	most := 0
	for _, k := range kinds {
		hits := 0
		for _, w := range words {
			if slices.Contains(k.words, w) {
				hits++
			}
		}
		if hits > most {
			most, p.Type, p.Complexity = hits, k.name, k.base
		}
	}
	for _, w := range words {
		if len(w) > 3 && !slices.Contains(p.Keywords, w) && len(p.Keywords) < maxKeywords {
			p.Keywords = append(p.Keywords, w)
		}
		if slices.Contains(hard, w) {
			p.Complexity += 0.1
		}
	}
	p.Complexity += min(float64(len(words))/1000, 0.3)
	p.Complexity = min(p.Complexity, 1)
	return p
}
