package agents_test

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/selvage-mesh/selvage/api"
	"github.com/selvage-mesh/selvage/api/apitest"
)

func TestMachinesOverSSHAreDescribedAndProbed(t *testing.T) {
	h := apitest.NewHarness(t)
	of := h.Company("Acme")
	in := "/api/companies/" + of + "/environments"
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	lines := make(chan string, 4)
	go func() {
		for line := range lines {
			if conn, err := l.Accept(); err == nil {
				fmt.Fprint(conn, line)
				conn.Close()
			}
		}
	}()
	defer close(lines)
	port := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	secret := h.Call("POST", "/api/companies/"+of+"/secrets", `{"name":"box key","value":"canary-of-a-key"}`).
		Want(t, 201, "").Field(t, "id")
	config := `{"host":"127.0.0.1","port":` + port +
		`,"username":"ci","remoteWorkspacePath":"/srv/work","privateKeySecretRef":{"type":"secret_ref","secretId":"` +
		secret + `"}}`
	body := func(config string) string { return `{"name":"Box","driver":"ssh","config":` + config + `}` }
	for bad, why := range map[string]string{
		`{}`: "config.host",
		`{"host":"-oProxyCommand=x","username":"ci","remoteWorkspacePath":"/w"}`: "config.host",
		`{"host":"h","username":"ci"}`:                                           "config.remoteWorkspacePath",

		`{"host":"h","username":"-l","remoteWorkspacePath":"/w"}`:                                "config.username",
		`{"host":"h","port":70000,"username":"ci","remoteWorkspacePath":"/w"}`:                   "config.port",
		`{"host":"h","username":"ci","remoteWorkspacePath":"/w","privateKey":"canary-of-a-key"}`: "config.privateKey",
		strings.Replace(config, `"secret_ref"`, `"plain"`, 1):                                    "privateKeySecretRef",
	} {
		a := h.Call("POST", in, body(bad)).Want(t, 422, why)
		if strings.Contains(string(a.Body), "canary") {
			t.Errorf("%s", a.Body)
		}
	}
	h.Call("POST", in, body(strings.Replace(config, secret, api.NewID(), 1))).Want(t, 404, "Secret not found")
	h.Call("POST", in, `{"name":"Box","driver":"sandbox","config":{}}`).Want(t, 422, "driver sandbox")
	h.Call("POST", in, `{"name":"Box","driver":"ssh","config":`+config+`,"envVars":{"A":"b"}}`).Want(t, 422, "envVars")
	box := h.Call("POST", in, body(config)).Want(t, 201, `"strictHostKeyChecking":true`).Field(t, "id")
	h.Call("POST", in, body(config)).Want(t, 409, "Environment already exists: Box")
	on := "/api/environments/" + box
	h.Call("GET", in, "").Want(t, 200, `"name":"Box"`)
	h.Call("GET", on+"/secret-refs", "").Want(t, 200, `"secretName":"box key","status":"active"`)
	h.Call("PATCH", on, `{"description":"Under the desk","status":"archived"}`).Want(t, 200, `"status":"archived"`)
	h.Call("PATCH", on,
		`{"config":{"host":"h","username":"ci","remoteWorkspacePath":"/w","privateKey":"canary-of-a-key"}}`).
		Want(t, 422, "config.privateKey")
	h.Call("GET", on+"/leases", "").Want(t, 200, "[]")
	h.Call("GET", on+"/delete-blast-radius", "").Want(t, 200, `"canDelete":true`)

	lines <- "welcome\r\nSSH-2.0-Test\x1b[31m_1\r\n"
	h.Call("POST", on+"/probe", `{}`).
		Want(t, 200, `"reachable":true,"remoteWorkspacePath":"/srv/work","runExecution":"unsupported",`+
			`"server":"SSH-2.0-Test[31m_1"`)
	lines <- "220 mail ready\r\n"
	h.Call("POST", in+"/probe-config", `{"driver":"ssh","config":`+config+`}`).
		Want(t, 200, "answers, but not as an SSH server")
	h.Call("POST", in+"/probe-config", `{"driver":"sandbox","config":{}}`).Want(t, 200, `"ok":false`)
	local := apitest.FirstOf(t, h.Call("GET", in, ""))
	h.Call("POST", "/api/environments/"+local+"/probe", `{}`).Want(t, 200, `"ok":true`)
	h.Call("PATCH", "/api/environments/"+local, `{"name":"x"}`).Want(t, 422, "stays as it is")
	h.Call("DELETE", "/api/environments/"+local, "").Want(t, 422, "stays as it is")

	// An agent can not have an environment that executes nothing.
	h.Call("POST", "/api/companies/"+of+"/agents",
		`{"name":"Ada","adapterType":"process","defaultEnvironmentId":"`+box+`"}`).Want(t, 422, "can not be chosen")
	h.Call("POST", "/api/companies/"+of+"/agents",
		`{"name":"Ada","adapterType":"process","defaultEnvironmentId":"`+api.NewID()+`"}`).
		Want(t, 404, "Environment not found")
	h.Call("DELETE", on, "").Want(t, 200, "")
	h.Call("GET", on, "").Want(t, 404, "Environment not found")
	h.Call("POST", on+"/probe", `{}`).Want(t, 404, "Environment not found")
	h.Call("GET", "/api/environment-leases/"+api.NewID(), "").Want(t, 404, "Environment lease not found")
	for _, b := range h.Node.Batches() {
		if strings.Contains(string(b), "canary-of-a-key") {
			t.Error("a key went to the ledger in the clear")
		}
	}
}
