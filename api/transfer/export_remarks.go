package transfer

import (
	"cmp"
	"slices"
	"strings"

	"github.com/selvage-mesh/selvage/company/paper"
	"github.com/selvage-mesh/selvage/company/portable"
	"github.com/selvage-mesh/selvage/company/skill"
	"github.com/selvage-mesh/selvage/company/transfer"
)

// Threads on texts and comments on skills are exported with these. An author that is an
// exported agent is kept; what people wrote belongs to the importer afterwards.

// remarks returns the threads on a document of an issue or a routine, whose latest text
// is given. Threads whose annotated words are no longer in the text are left out.
func (e *exporter) remarks(d paper.Document, text, where string) (out []portable.Remark) {
	gone := 0
	for _, a := range paper.AnnotationsOf(e.tx, d) {
		if !strings.Contains(text, a.Exact) {
			gone++
			continue
		}
		r := portable.Remark{Status: a.Status, Exact: a.Exact, Before: a.Before, After: a.After, Start: a.Start, End: a.End,
			MarkdownStart: a.MarkdownStart, MarkdownEnd: a.MarkdownEnd}
		for _, c := range a.Comments {
			r.Said = append(r.Said, portable.Said{Body: c.Body, AuthorAgent: known(e.agents, string(c.AuthorAgent))})
		}
		out = append(out, r)
	}
	if gone > 0 {
		e.warn("%s: %d remarks were left out, as the words that they are about do not stand in its latest text.", where, gone)
	}
	return out
}

// onSkill returns the comments on a skill and its test inputs.
func (e *exporter) onSkill(s skill.Skill) (said []portable.Said, inputs []portable.SkillInput) {
	at := map[string]int{}
	for _, c := range skill.SkillCommentsOf(e.tx, s) {
		if c.DeletedAt != 0 {
			continue
		}
		line := portable.Said{Body: c.Body, AuthorAgent: known(e.agents, string(c.AuthorAgent))}
		if n, ok := at[string(c.Parent)]; ok {
			line.Answers = &n
		}
		at[c.ID] = len(said)
		said = append(said, line)
	}
	for _, in := range skill.SkillInputsOf(e.tx, s) {
		inputs = append(inputs, portable.SkillInput{Name: in.Name, Content: in.Content})
	}
	slices.SortFunc(inputs, func(a, b portable.SkillInput) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Content, b.Content))
	})
	return said, inputs
}

// remarkSteps create the threads on a revision of a text. The kinds of the commands
// begin with kind.
func (im *importer) remarkSteps(kind, on, key, revision string, list []portable.Remark) {
	for _, r := range list {
		thread := im.newID()
		for n, c := range r.Said {
			said := paper.Remark{ID: im.newID(), Body: c.Body}
			var step *transfer.ImportStep
			if n == 0 {
				step = im.step(kind+".create", paper.AnnotateDocument{ID: thread, Issue: on, Key: key, Revision: revision,
					Number: 1, Exact: r.Exact, Before: r.Before, After: r.After,
					Start: r.Start, End: r.End, MarkdownStart: r.MarkdownStart, MarkdownEnd: r.MarkdownEnd, Comment: said})
			} else {
				step = im.step(kind+".comment", paper.ChangeAnnotation{Issue: on, Key: key, Thread: thread, Comment: said})
			}
			im.by(step, c.AuthorAgent)
		}
		if r.Status == "resolved" && len(r.Said) > 0 {
			im.step(kind+".update", paper.ChangeAnnotation{Issue: on, Key: key, Thread: thread, Status: r.Status})
		}
	}
}

// by sets the agent that is the author of a step.
func (im *importer) by(step *transfer.ImportStep, slug *string) {
	if slug != nil {
		step.Author = cmp.Or(im.agents[*slug], im.past[*slug])
	}
}

// onSkillSteps create the comments and test inputs of a skill that the import creates.
func (im *importer) onSkillSteps(theSkill string, s portable.Skill) {
	ids := make([]string, len(s.Comments))
	for n, c := range s.Comments {
		ids[n] = im.newID()
		p := skill.SaySkill{ID: ids[n], Skill: theSkill, Body: c.Body}
		if c.Answers != nil && *c.Answers >= 0 && *c.Answers < n {
			p.Parent = ids[*c.Answers]
		}
		im.by(im.step(skill.KindSkillCommentCreate, p), c.AuthorAgent)
	}
	for _, in := range s.Inputs {
		id := im.newID()
		im.skillInputs[s.Slug+"/"+in.Name] = id
		im.step(skill.KindSkillTestInput, skill.SaveSkillInput{ID: id, Skill: theSkill, Name: &in.Name, Content: &in.Content})
	}
}
