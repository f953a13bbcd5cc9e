package api

const passList = `
001-health 002-openapi-head 003-unknown-api-404 004-auth-get-session 005-cli-auth-me 006-instance-settings-general
007-instance-settings-experimental
`
