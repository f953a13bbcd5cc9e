package cli

import (
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// reached returns the value at a path of members; 0 is the first element of a list.
func reached(row any, path string) any {
	for name := range strings.SplitSeq(path, ".") {
		switch of := row.(type) {
		case map[string]any:
			row = of[name]
		case []any:
			if name != "0" || len(of) == 0 {
				return nil
			}
			row = of[0]
		default:
			return nil
		}
	}
	return row
}

// member returns the value at a path of members as text for people.
func member(row any, path string) string {
	switch v := reached(row, path).(type) {
	case nil:
		return "-"
	case string:
		return Dash(strings.Join(strings.Fields(Visible(v)), " "))
	case bool:
		return strconv.FormatBool(v)
	case float64:
		if strings.HasSuffix(path, "Cents") {
			return Cents(int64(v))
		}
		if v == math.Trunc(v) {
			return strconv.FormatInt(int64(v), 10)
		}
		return strconv.FormatFloat(v, 'f', -1, 64)
	case []any:
		if len(v) == 0 {
			return "-"
		}
		words := make([]string, 0, len(v))
		for _, one := range v {
			word, ok := one.(string)
			if !ok {
				return strconv.Itoa(len(v))
			}
			words = append(words, word)
		}
		return strings.Join(words, ",")
	}
	return "…"
}

// read returns the text of a member for people: a time is formatted by When.
func read(path, text string, wide bool) string {
	if strings.HasSuffix(path, "At") || strings.HasSuffix(path, "Until") {
		if told := when(text, wide); told != "-" {
			return told
		}
	}
	return text
}

// maxCell bounds the text in a column of a table, in characters.
const maxCell = 60

// Cell shortens a text for a column of a table.
func Cell(text string) string { return Cut(text, maxCell) }

// Cut shortens a text to at most most characters.
func Cut(text string, most int) string {
	if r := []rune(text); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return text
}

// InWords finds the cells in the sentence of a verb.
var InWords = regexp.MustCompile(`\{([A-Za-z0-9.:|+'?]+)\}`)

// cellOf returns the text of a cell of a table, or of a sentence, for a row. A cell is
// the path of a member, with dots for nested members. A prefix selects the format: id:,
// the beginning of an ID; n:, the length of a list; cents:, an amount of money; milli:,
// a number of thousandths; short:, a summary of details; set:, a number unless it is 0,
// which says that none is set; and a word before ? is shown if the member is true or
// present. Times are formatted by When. Of several alternatives with | between them, the
// first that is present is used; a word in quotes always is. Parts with + between them
// are all used.
func cellOf(row any, cell string, wide bool) string {
	for one := range strings.SplitSeq(cell, "|") {
		if word, ok := strings.CutPrefix(one, "'"); ok {
			return strings.TrimSuffix(word, "'")
		}
		var words []string
		for path := range strings.SplitSeq(one, "+") {
			if word, path, ok := strings.Cut(path, "?"); ok {
				if text := member(row, path); text != "-" && text != "false" {
					words = append(words, word)
				}
				continue
			}
			how, path, ok := strings.Cut(path, ":")
			if !ok {
				how, path = "", how
			}
			if word := shown(row, how, path, wide); word != "-" {
				words = append(words, word)
			}
		}
		if len(words) > 0 {
			return strings.Join(words, " ")
		}
	}
	return "-"
}

// shown returns a member of a row in one of the formats of cellOf.
func shown(row any, how, path string, wide bool) string {
	text := member(row, path)
	switch how {
	case "":
		return read(path, text, wide)
	case "id":
		return Short(text)
	case "set":
		if text == "0" {
			return "-"
		}
	case "n":
		list, _ := reached(row, path).([]any)
		return strconv.Itoa(len(list))
	case "cents":
		n, _ := strconv.ParseInt(text, 10, 64)
		return Cents(n)
	case "milli":
		n, _ := strconv.ParseFloat(text, 64)
		return strconv.FormatFloat(n/1000, 'g', -1, 64)
	case "short":
		o, _ := row.(map[string]any)
		return Dash(InShort(o[path]))
	}
	return text
}

// membersOf returns the short members of an object and of the objects in it, each with
// its name.
func membersOf(before string, o map[string]any, wide bool) (lines [][2]string) {
	for _, name := range slices.Sorted(maps.Keys(o)) {
		if inner, ok := o[name].(map[string]any); ok {
			lines = append(lines, membersOf(before+name+".", inner, wide)...)
		} else if text := member(o, name); text != "-" {
			lines = append(lines, [2]string{before + name, read(name, text, wide)})
		}
	}
	return lines
}

// InShort summarizes the details of a line of the log in a few words: the tools that
// were called and the result, a name, and a change from one value to another.
func InShort(details any) string {
	o, _ := details.(map[string]any)
	var words []string
	add := func(word string) {
		if word != "" && word != "-" {
			words = append(words, word)
		}
	}
	if calls, _ := o["calls"].([]any); len(calls) > 0 {
		for _, call := range calls {
			add(member(call, "tool") + " " + member(call, "status"))
		}
		if n, _ := o["omitted"].(float64); n > 0 {
			add(strconv.Itoa(int(n)) + " more")
		}
		return Cut(strings.Join(words, ", "), MaxHappened)
	}
	for _, name := range []string{"identifier", "name", "title", "issueTitle", "key"} {
		add(member(o, name))
	}
	changes, _ := o["changes"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(changes)) {
		switch from, to := member(changes[name], "from"), member(changes[name], "to"); {
		case name == "statusVersion" || strings.HasSuffix(name, "Id") || from == "…" || to == "…":
		default:
			add(name + " " + from + " → " + to)
		}
	}
	if len(changes) == 0 {
		add(member(o, "status"))
	}
	add(member(o, "bodySnippet"))
	return Cut(strings.Join(words, " "), MaxHappened)
}

// MaxHappened bounds the text of an event in a line, in characters.
const MaxHappened = 120
