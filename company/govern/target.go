package govern

import (
	"net/netip"
	"net/url"
	"strings"

	"github.com/selvage-mesh/selvage/governance"
	"github.com/selvage-mesh/selvage/ledger"
)

// What agents reach beside tools and agents has paths too: secrets, models and hosts of a company. Models and hosts are
// also under /network, where the mesh says for all companies what it allows: the gate asks both paths.
//
//	/companies/<id>/secrets/<secret>
//	/companies/<id>/models/<upstream>/<model>
//	/companies/<id>/hosts/<label>/<label>…      labels of a host name from the last to the first, or an IP address
//
// An act in an environment also needs the right on /environments/<class>.

const (
	// ActSecret is the act at a node by which an agent gets the value of a secret.
	ActSecret = "secret.resolve"
	networkAt = "/network/"
	classesAt = "/environments/"
	// hostParts bounds the labels of a host that are parts of a path; those of deeper names share the last part. So each
	// path fits [governance.MaxTreeDepth].
	hostParts = 10
)

// boundless are the namespaces below a company and /network in which a path needs no vertex: nobody lists all hosts and
// models.
var boundless = []string{"models", "hosts"}

// PathPart returns a name as one part of a path.
func PathPart(name string) string {
	if strings.Trim(name, ".") == "" { // "." and ".." mean something in a path
		return strings.ReplaceAll(name, ".", "%2E")
	}
	return url.PathEscape(name)
}

// SecretPath returns where a secret of a company stands in the resource tree.
func SecretPath(of ledger.CompanyID, id string) string {
	return companiesPath + string(of) + "/secrets/" + PathPart(id)
}

// ModelPath returns where a model of an upstream stands in the resource tree.
func ModelPath(of ledger.CompanyID, upstream, model string) string {
	return companiesPath + string(of) + "/models/" + PathPart(upstream) + "/" + PathPart(model)
}

// HostPath returns where a host of the network stands in the resource tree: api.example.com is com/example/api, so what
// is said of example.com holds for all names below it.
func HostPath(of ledger.CompanyID, host string) string {
	at := companiesPath + string(of) + "/hosts"
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if ip, err := netip.ParseAddr(host); err == nil {
		return at + "/" + url.PathEscape(ip.Unmap().WithZone("").String())
	}
	labels, p := strings.Split(host, "."), at
	for n := 0; len(labels) > 0; n++ {
		last := labels[len(labels)-1]
		if labels = labels[:len(labels)-1]; n == hostParts-1 && len(labels) > 0 {
			last, labels = strings.Join(append(labels, last), "."), nil
		}
		p += "/" + url.PathEscape(last)
	}
	if governance.CheckPath(p) != nil { // no name of a host: nobody can reach it
		return at
	}
	return p
}

// Boundless reports whether a path is below a namespace in which paths need no vertex.
func Boundless(p string) bool {
	rest, ok := strings.CutPrefix(p, networkAt)
	if !ok {
		if rest, ok = strings.CutPrefix(p, companiesPath); !ok {
			return false
		}
		_, rest, _ = strings.Cut(rest, "/")
	}
	for _, name := range boundless {
		if strings.HasPrefix(rest, name+"/") {
			return true
		}
	}
	return false
}

// alsoAt returns the other paths that an act needs the right on: what the mesh says of a model or host, and the class
// of the environment that the act is in.
func alsoAt(act governance.Act) (out []string) {
	own := companiesPath + string(act.Company) + "/"
	if rest, ok := strings.CutPrefix(act.Target, own); ok {
		for _, name := range boundless {
			if rest == name || strings.HasPrefix(rest, name+"/") {
				out = append(out, networkAt+rest)
			}
		}
	}
	if act.Scope.Class != "" {
		out = append(out, classesAt+string(act.Scope.Class))
	}
	return out
}
