package api

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
)

func TestMachinesOverSSHAreDescribedAndProbed(t *testing.T) {
	h := newHarness(t)
	of := h.company("Acme")
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
	secret := h.call("POST", "/api/companies/"+of+"/secrets", `{"name":"box key","value":"canary-of-a-key"}`).want(t, 201, "").field(t, "id")
	config := `{"host":"127.0.0.1","port":` + port + `,"username":"ci","remoteWorkspacePath":"/srv/work","privateKeySecretRef":{"type":"secret_ref","secretId":"` + secret + `"}}`
	body := func(config string) string { return `{"name":"Box","driver":"ssh","config":` + config + `}` }
	for bad, why := range map[string]string{
		`{}`: "config.host",
		`{"host":"-oProxyCommand=x","username":"ci","remoteWorkspacePath":"/w"}`:                 "config.host",
		`{"host":"h","username":"ci"}`:                                                           "config.remoteWorkspacePath",
		`{"host":"h","username":"-l","remoteWorkspacePath":"/w"}`:                                "config.username",
		`{"host":"h","port":70000,"username":"ci","remoteWorkspacePath":"/w"}`:                   "config.port",
		`{"host":"h","username":"ci","remoteWorkspacePath":"/w","privateKey":"canary-of-a-key"}`: "config.privateKey",
		strings.Replace(config, `"secret_ref"`, `"plain"`, 1):                                    "privateKeySecretRef",
	} {
		a := h.call("POST", in, body(bad)).want(t, 422, why)
		if strings.Contains(string(a.body), "canary") {
			t.Errorf("%s", a.body)
		}
	}
	h.call("POST", in, body(strings.Replace(config, secret, NewID(), 1))).want(t, 404, "Secret not found")
	h.call("POST", in, `{"name":"Box","driver":"sandbox","config":{}}`).want(t, 422, "driver sandbox")
	h.call("POST", in, `{"name":"Box","driver":"ssh","config":`+config+`,"envVars":{"A":"b"}}`).want(t, 422, "envVars")
	box := h.call("POST", in, body(config)).want(t, 201, `"strictHostKeyChecking":true`).field(t, "id")
	h.call("POST", in, body(config)).want(t, 409, "Environment already exists: Box")
	on := "/api/environments/" + box
	h.call("GET", in, "").want(t, 200, `"name":"Box"`)
	h.call("GET", on+"/secret-refs", "").want(t, 200, `"secretName":"box key","status":"active"`)
	h.call("PATCH", on, `{"description":"Under the desk","status":"archived"}`).want(t, 200, `"status":"archived"`)
	h.call("PATCH", on, `{"config":{"host":"h","username":"ci","remoteWorkspacePath":"/w","privateKey":"canary-of-a-key"}}`).want(t, 422, "config.privateKey")
	h.call("GET", on+"/leases", "").want(t, 200, "[]")
	h.call("GET", on+"/delete-blast-radius", "").want(t, 200, `"canDelete":true`)

	lines <- "welcome\r\nSSH-2.0-Test\x1b[31m_1\r\n"
	h.call("POST", on+"/probe", `{}`).want(t, 200, `"reachable":true,"remoteWorkspacePath":"/srv/work","runExecution":"unsupported","server":"SSH-2.0-Test[31m_1"`)
	lines <- "220 mail ready\r\n"
	h.call("POST", in+"/probe-config", `{"driver":"ssh","config":`+config+`}`).want(t, 200, "answers, but not as an SSH server")
	h.call("POST", in+"/probe-config", `{"driver":"sandbox","config":{}}`).want(t, 200, `"ok":false`)
	local := firstOf(t, h.call("GET", in, ""))
	h.call("POST", "/api/environments/"+local+"/probe", `{}`).want(t, 200, `"ok":true`)
	h.call("PATCH", "/api/environments/"+local, `{"name":"x"}`).want(t, 422, "stays as it is")
	h.call("DELETE", "/api/environments/"+local, "").want(t, 422, "stays as it is")

	// No agent is given what would carry nothing out.
	h.call("POST", "/api/companies/"+of+"/agents", `{"name":"Ada","adapterType":"process","defaultEnvironmentId":"`+box+`"}`).want(t, 422, "can not be chosen")
	h.call("POST", "/api/companies/"+of+"/agents", `{"name":"Ada","adapterType":"process","defaultEnvironmentId":"`+NewID()+`"}`).want(t, 404, "Environment not found")
	h.call("DELETE", on, "").want(t, 200, "")
	h.call("GET", on, "").want(t, 404, "Environment not found")
	h.call("POST", on+"/probe", `{}`).want(t, 404, "Environment not found")
	h.call("GET", "/api/environment-leases/"+NewID(), "").want(t, 404, "Environment lease not found")
	for _, b := range h.node.batches() {
		if strings.Contains(string(b), "canary-of-a-key") {
			t.Error("a key went to the ledger in the clear")
		}
	}
}
