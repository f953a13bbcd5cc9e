package main

import "github.com/selvage-mesh/selvage/cmd/node/cli"

// environmentVerbs are the rows of selvage environment.
var environmentVerbs = []cli.Verb{
	{Use: "list", Short: "List environments and ssh machines", Path: "/api/companies/{company}/environments",
		Columns: "NAME=name DRIVER=driver STATUS=status HOST=config.host ID=id"},
	{Use: "show ENVIRONMENT", Short: "Show an environment", Path: "/api/environments/{environment:1}",
		Lines: "name=name description=description driver=driver status=status host=config.host " +
			"port=config.port user=config.username folder=config.remoteWorkspacePath created=createdAt " +
			"id=id"},
	{Use: "add NAME HOST USER FOLDER", Short: "Add an ssh machine", Method: "POST",
		Path: "/api/companies/{company}/environments", Says: "{name} {id}", Fixed: map[string]any{"driver": "ssh"},
		Fields: []cli.Field{{Place: 1, Member: "name"}, {Place: 2, Member: "config.host"},
			{Place: 3, Member: "config.username"}, {Place: 4, Member: "config.remoteWorkspacePath"},
			{Name: "port", Member: "config.port", Kind: "int", About: "port of its ssh server"},
			{Name: "known-hosts", Member: "config.knownHosts", Kind: "file", About: "file with its host key"},
			withDescription}},
	{Use: "update ENVIRONMENT", Short: "Edit an ssh machine", Method: "PATCH",
		Path: "/api/environments/{environment:1}", Says: "{name} {status}",
		Fields: []cli.Field{{Name: "name", Member: "name", About: "its new name"}, withDescription,
			{Name: "status", Member: "status", About: "active or archived"},
			{Name: "config", Member: "config", Kind: "json", About: "how it is reached, or a file with it"}}},
	{Use: "capabilities", Short: "Show what adapters can do in which environment",
		Path: "/api/companies/{company}/environments/capabilities"},
	{Use: "secrets ENVIRONMENT", Short: "List the secrets that an environment refers to, without values",
		Path:    "/api/environments/{environment:1}/secret-refs",
		Columns: "SECRET=secretName VARIABLE=configPath VERSION=version STATUS=status"},
	{Use: "lease LEASE", Short: "Show a lease", Path: "/api/environment-leases/{1}"},
	{Use: "probe ENVIRONMENT", Short: "Test the connection to an ssh machine", Method: "POST",
		Path: "/api/environments/{environment:1}/probe", Says: "{ok} {summary}"},
	{Use: "leases ENVIRONMENT", Short: "List its leases", Path: "/api/environments/{environment:1}/leases",
		Columns: "ID=id RUN=heartbeatRunId STATUS=status SINCE=acquiredAt"},
	{Use: "uses ENVIRONMENT", Short: "List what uses an environment",
		Path: "/api/environments/{environment:1}/delete-blast-radius"},
	{Use: "remove ENVIRONMENT", Short: "Forget a machine", Method: "DELETE",
		Path: "/api/environments/{environment:1}", Says: "{name} removed"},
}
