package api

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"github.com/selvage-mesh/selvage/adapter"
	"github.com/selvage-mesh/selvage/company"
)

// scheduleMembers are the settings of an agent's schedule that the rules read:
// members of runtimeConfig.heartbeat, or of adapterConfig, as the specification
// has them. The counts are whole; maxConcurrentRuns is clamped, so that it may
// be any.
var scheduleMembers = []struct {
	name    string
	flag    bool // true or false; else a count
	minimum int64
}{
	{name: "enabled", flag: true}, {name: "wakeOnDemand", flag: true}, {name: "skipTimerWhenNoActionableWork", flag: true},
	{name: "intervalSec"}, {name: "maxConcurrentRuns", minimum: -maxSafeInt}, {name: "maxDailyRuns"}, {name: "maxDailyCostCents"}, {name: "maxFruitlessRuns"},
}

// maxSafeInt is the greatest whole number that every client can write.
const maxSafeInt = 1<<53 - 1

// checkConfigs refuses a schedule that the rules would take for none: they read a
// setting of the wrong type as one that was not given; and what no run of an adapter
// ("" for the default) could decode. The configurations are members of a request's
// object at a path; nil and null say nothing.
func checkConfigs(kind string, adapterConfig, runtimeConfig json.RawMessage, at ...any) error {
	var runtime map[string]json.RawMessage
	_ = json.Unmarshal(runtimeConfig, &runtime) // what is no object is refused by the rules
	beat := append(at[:len(at):len(at)], "runtimeConfig", "heartbeat")
	issues := scheduleIssues(runtime["heartbeat"], beat)
	if b := runtime["heartbeat"]; len(b) > 0 && b[0] != '{' && b[0] != 'n' {
		issues = []Issue{{Code: "invalid_type", Expected: "object", Path: beat, Message: "Invalid input: expected object, received " + typeName(b)}}
	}
	config := append(at[:len(at):len(at)], "adapterConfig")
	issues = append(append(issues, scheduleIssues(adapterConfig, config)...), adapterIssues(kind, adapterConfig, config)...)
	var profiles map[string]struct{ AdapterConfig json.RawMessage }
	_ = json.Unmarshal(runtime["modelProfiles"], &profiles) // what is no profile is none
	for _, name := range slices.Sorted(maps.Keys(profiles)) {
		issues = append(issues, adapterIssues(kind, profiles[name].AdapterConfig, append(at[:len(at):len(at)], "runtimeConfig", "modelProfiles", name, "adapterConfig"))...)
	}
	if len(issues) > 0 {
		return ValidationError(issues[:min(len(issues), MaxIssues)]...)
	}
	return nil
}

// adapterIssues are the members of an adapterConfig that no run of the adapter could
// decode; what it does not know is nobody's.
func adapterIssues(kind string, config json.RawMessage, at []any) (issues []Issue) {
	k, _ := adapter.Find(cmp.Or(kind, company.DefaultAdapter))
	for _, m := range k.Misfits(config) {
		path := at[:len(at):len(at)]
		for _, name := range m.Path {
			path = append(path, name)
		}
		issues = append(issues, Issue{Code: "invalid_type", Expected: m.Expected, Path: path, Message: "Invalid input: expected " + m.Expected})
	}
	return issues
}

// scheduleIssues is what is wrong with the settings among the members of an object.
func scheduleIssues(b json.RawMessage, at []any) (issues []Issue) {
	var members map[string]json.RawMessage
	_ = json.Unmarshal(b, &members) // likewise
	for _, m := range scheduleMembers {
		v, given := members[m.name]
		if !given || string(v) == "null" {
			continue
		}
		path, kind := append(at[:len(at):len(at)], m.name), typeName(v)
		n, err := strconv.ParseInt(string(v), 10, 64)
		switch {
		case m.flag && kind != "boolean":
			issues = append(issues, Issue{Code: "invalid_type", Expected: "boolean", Path: path, Message: "Invalid input: expected boolean, received " + kind})
		case m.flag:
		case kind != "number":
			issues = append(issues, Issue{Code: "invalid_type", Expected: "number", Path: path, Message: "Invalid input: expected number, received " + kind})
		case err != nil || n > maxSafeInt:
			issues = append(issues, Issue{Code: "invalid_type", Expected: "int", Format: "safeint", Path: path, Message: "Invalid input: expected int, received number"})
		case n < m.minimum:
			issues = append(issues, Issue{Origin: "number", Code: "too_small", Minimum: new(float64(m.minimum)), Inclusive: new(true), Path: path,
				Message: "Too small: expected number to be >=" + strconv.FormatInt(m.minimum, 10)})
		}
	}
	return issues
}
