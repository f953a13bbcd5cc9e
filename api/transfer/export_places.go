package transfer

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/company/conceal"
)

// Objects that say where work runs (a project's policy, an issue's own settings) are
// exported without values that are valid on one machine only. Workspaces are named by
// their keys in the package.

const (
	defaultSpaceID  = "defaultProjectWorkspaceId"
	defaultSpaceKey = "defaultProjectWorkspaceKey"
)

// placing returns such an object as it is exported, nil if nothing is left of it.
func (e *exporter) placing(what string, raw json.RawMessage) map[string]any {
	m := objectOf(conceal.RedactConfig(raw))
	if id, ok := m[defaultSpaceID].(string); ok {
		delete(m, defaultSpaceID)
		if key := known(e.spaces, id); key != nil {
			m[defaultSpaceKey] = *key
		} else {
			e.warn("%s: its default workspace does not travel.", what)
		}
	}
	v, left, holes := travelling(e.withoutPlaces(what, m))
	if left || holes {
		e.warn("%s names a secret, which was left out.", what)
	}
	if m, _ = v.(map[string]any); len(m) == 0 {
		return nil
	}
	return m
}

// withoutPlaces removes a machine's folders and environments from a value.
func (e *exporter) withoutPlaces(what string, v any) any {
	switch x := v.(type) {
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(x)) {
			path, isText := x[k].(string)
			switch {
			case k == "env":
				e.warn("%s: the values of an environment in it were left out.", what)
				delete(x, k)
			case (k == "cwd" || strings.HasSuffix(k, "Dir") || strings.HasSuffix(k, "Path")) && isText && elsewhere(path):
				e.warn("%s: %s is a folder of one machine and was left out.", what, k)
				delete(x, k)
			default:
				x[k] = e.withoutPlaces(what, x[k])
			}
		}
	case []any:
		for n := range x {
			x[n] = e.withoutPlaces(what, x[n])
		}
	}
	return v
}

// elsewhere reports whether a path is outside a workspace.
func elsewhere(path string) bool {
	return strings.HasPrefix(path, "/") || strings.HasPrefix(path, "~") || strings.HasPrefix(path, `\\`) ||
		len(path) > 1 && path[1] == ':' || strings.Contains(path, "..")
}

// placed translates such an object of a package for a project, or for an issue of one.
func (im *importer) placed(what, project string, m map[string]any) (json.RawMessage, error) {
	key, ok := m[defaultSpaceKey].(string)
	if !ok {
		return rawObject(m)
	}
	m = maps.Clone(m)
	delete(m, defaultSpaceKey)
	if id := im.spaces[project+"/"+key]; id != "" {
		m[defaultSpaceID] = id
	} else {
		im.warn("%s: its default workspace %s is not there.", what, api.Cut(key, 80))
	}
	return rawObject(m)
}
