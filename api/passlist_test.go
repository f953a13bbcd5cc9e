package api

// passList names exchanges in the order of the story, see passing.
const passList = `
001-health 002-openapi-head 003-unknown-api-404 004-auth-get-session 005-cli-auth-me 006-instance-settings-general
001-health
002-openapi-head
003-unknown-api-404
004-auth-get-session
005-cli-auth-me
006-instance-settings-general
007-instance-settings-experimental 008-adapters-list 009-companies-list 010-company-create
007-instance-settings-experimental
008-adapters-list
009-companies-list
010-company-create
011-company-create-400-empty 012-company-create-400-badjson 013-company-get 014-company-get-404
011-company-create-400-empty
012-company-create-400-badjson
013-company-get
014-company-get-404
015-company-get-notuuid 016-company-patch 017-company-branding 018-company-branding-400 019-company2-create
015-company-get-notuuid
016-company-patch
017-company-branding
018-company-branding-400
019-company2-create
020-companies-stats 021-goals-list-initial 022-goal-create 023-goal-create-400 024-goal-create-child 025-goals-list
020-companies-stats
021-goals-list-initial
022-goal-create
023-goal-create-400
024-goal-create-child
025-goals-list
026-goal-get 027-goal-patch 028-goal-get-404 029-agent-create-ceo 030-agent-create-worker 031-agent-create-http
026-goal-get
027-goal-patch
028-goal-get-404
029-agent-create-ceo
030-agent-create-worker
031-agent-create-http
032-agent-create-400-role 033-agent-create-unknown-adapter 034-agent-create-422-reportsTo-missing 035-agents-list
032-agent-create-400-role
033-agent-create-unknown-adapter
034-agent-create-422-reportsTo-missing
035-agents-list
036-agent-get 037-agent-get-404 038-agent-get-by-name-ref 039-agent-patch 040-agent-patch-cycle
036-agent-get
037-agent-get-404
038-agent-get-by-name-ref
039-agent-patch
040-agent-patch-cycle
041-agent-configuration 042-agent-config-revisions 043-agent-configurations 044-agent-pause
041-agent-configuration
042-agent-config-revisions
043-agent-configurations
044-agent-pause
045-agent-invoke-paused-409 046-agent-resume 047-org 048-org-svg 049-agent-key-create 050-agent-keys-list
045-agent-invoke-paused-409
046-agent-resume
047-org
048-org-svg
049-agent-key-create
050-agent-keys-list
051-agent-me-with-key 052-agent-me-inbox-lite 053-agent-me-no-agent-401 054-invalid-bearer-401
051-agent-me-with-key
052-agent-me-inbox-lite
053-agent-me-no-agent-401
054-invalid-bearer-401
055-agent-key-cross-company-403 056-agent-key-board-only-403 057-agent-permissions 058-agent-runtime-state
055-agent-key-cross-company-403
056-agent-key-board-only-403
057-agent-permissions
058-agent-runtime-state
059-agent-task-sessions 060-agent-skills 061-agent-instructions-bundle 062-project-create 063-projects-list
059-agent-task-sessions
060-agent-skills
061-agent-instructions-bundle
062-project-create
063-projects-list
064-project-get 065-project-patch 066-project-create-400 067-project-workspace-create 068-project-workspaces-list
064-project-get
065-project-patch
066-project-create-400
067-project-workspace-create
068-project-workspaces-list
069-issue-create 070-issue-create-400 071-issue-create-404-company 072-issue-create-bad-assignee
069-issue-create
070-issue-create-400
071-issue-create-404-company
072-issue-create-bad-assignee
073-issue-create-in-progress-no-assignee-422 074-issue-create-duplicate-title 075-issues-list 076-issues-list-filter
073-issue-create-in-progress-no-assignee-422
074-issue-create-duplicate-title
075-issues-list
076-issues-list-filter
077-issues-count-400 078-issues-count-blocked 079-issue-create-idempotency-1 080-issue-create-idempotency-2-replay
077-issues-count-400
078-issues-count-blocked
079-issue-create-idempotency-1
080-issue-create-idempotency-2-replay
081-issue-transition-0-to-done 082-issue-transition-1-to-todo 083-issue-transition-2-to-backlog
081-issue-transition-0-to-done
082-issue-transition-1-to-todo
083-issue-transition-2-to-backlog
084-issue-transition-3-to-in_review 085-issue-transition-4-to-cancelled 086-issue-transition-5-to-todo
084-issue-transition-3-to-in_review
085-issue-transition-4-to-cancelled
086-issue-transition-5-to-todo
087-issue-transition-6-to-blocked 088-issue-transition-blocked-with-descriptor 089-issues-root-400 090-issue-get
087-issue-transition-6-to-blocked
088-issue-transition-blocked-with-descriptor
089-issues-root-400
090-issue-get
091-issue-get-identifier 092-issue-get-404 093-issue-patch 094-issue-patch-400-status
091-issue-get-identifier
092-issue-get-404
093-issue-patch
094-issue-patch-400-status
095-issue-patch-in-progress-no-assignee 096-issue-heartbeat-context 097-issue-checkout 098-issue-checkout-conflict-409
095-issue-patch-in-progress-no-assignee
096-issue-heartbeat-context
097-issue-checkout
098-issue-checkout-conflict-409
099-issue-checkout-same-agent-again 100-issue-checkout-400 101-issue-checkout-404 102-issue-after-checkout~
099-issue-checkout-same-agent-again
100-issue-checkout-400
101-issue-checkout-404
102-issue-after-checkout~
103-issue-comment-create 104-issue-comment-400 105-issue-comments-list 106-issue-comment-get 107-issue-release~
103-issue-comment-create
104-issue-comment-400
105-issue-comments-list
106-issue-comment-get
107-issue-release~
108-issue-force-release~ 109-issue-force-release-agent-403 110-agent-checkout-no-runid-401
108-issue-force-release~
109-issue-force-release-agent-403
110-agent-checkout-no-runid-401
111-agent-checkout-other-403 112-label-create 113-labels-list 114-issue-create-labelled 115-issue-create-blocked-by
111-agent-checkout-other-403
112-label-create
113-labels-list
114-issue-create-labelled
115-issue-create-blocked-by
116-issue-checkout-blocked-422 117-issue-child-create~ 118-issue-read 119-issue-inbox-archive 120-issue-document-put
116-issue-checkout-blocked-422
117-issue-child-create~
118-issue-read
119-issue-inbox-archive
120-issue-document-put
121-issue-document-put-stale-409 122-issue-document-put2 123-issue-document-get 124-issue-documents-list
121-issue-document-put-stale-409
122-issue-document-put2
123-issue-document-get
124-issue-documents-list
125-issue-document-revisions 126-issue-attachment-upload 127-issue-attachments-list 128-attachment-content
125-issue-document-revisions
126-issue-attachment-upload
127-issue-attachments-list
128-attachment-content
129-attachment-delete 130-work-product-create 131-work-products-list 132-interaction-suggest-tasks
129-attachment-delete
133-interaction-accept 134-interaction-ask 135-interaction-respond 136-interaction-confirm 137-interaction-reject
138-interactions-list 139-issue-activity 140-issue-runs~ 141-issue-live-runs 142-issue-tree-control-state
140-issue-runs~
141-issue-live-runs
142-issue-tree-control-state
143-issue-recovery-actions 144-search 145-heartbeat-invoke 146-heartbeat-run-get 147-heartbeat-run-events
143-issue-recovery-actions
145-heartbeat-invoke
146-heartbeat-run-get
147-heartbeat-run-events
148-heartbeat-run-log 149-heartbeat-run-issues 150-heartbeat-runs-list 151-agent-wakeup 152-issue-create-assigned
148-heartbeat-run-log
149-heartbeat-run-issues
150-heartbeat-runs-list
151-agent-wakeup
152-issue-create-assigned
153-issue-assigned-after-run~ 154-issue-assigned-runs~ 155-issue-assigned-comments 156-agent-create-sleeper
153-issue-assigned-after-run~
154-issue-assigned-runs~
155-issue-assigned-comments
156-agent-create-sleeper
157-heartbeat-invoke-sleeper 158-live-runs 159-heartbeat-invoke-while-running 160-agents-list-running
157-heartbeat-invoke-sleeper
158-live-runs
159-heartbeat-invoke-while-running
160-agents-list-running
161-heartbeat-run-cancel 162-heartbeat-run-cancelled-get~ 163-heartbeat-run-404 164-agent-create-failing
161-heartbeat-run-cancel
162-heartbeat-run-cancelled-get~
163-heartbeat-run-404
164-agent-create-failing
165-heartbeat-invoke-failing 166-heartbeat-run-failed-get 167-agent-after-failure 168-agent-create-timeout
165-heartbeat-invoke-failing
166-heartbeat-run-failed-get
167-agent-after-failure
168-agent-create-timeout
169-heartbeat-invoke-timeout 170-heartbeat-run-timeout-get 171-heartbeat-invoke-http-adapter
169-heartbeat-invoke-timeout
170-heartbeat-run-timeout-get
171-heartbeat-invoke-http-adapter
172-heartbeat-run-http-get~ 173-agent-comment-with-runid 174-agent-checkout-with-runid 175-agent-patch-done-with-runid
172-heartbeat-run-http-get~
173-agent-comment-with-runid
174-agent-checkout-with-runid
175-agent-patch-done-with-runid
176-approval-create-hire 177-approvals-list-pending 178-approval-get 179-approval-comment 180-approval-comments
176-approval-create-hire
177-approvals-list-pending
178-approval-get
179-approval-comment
180-approval-comments
181-approval-request-revision 182-approval-resubmit 183-approval-approve 184-approval-approve-again
181-approval-request-revision
182-approval-resubmit
183-approval-approve
184-approval-approve-again
185-approval-reject-after-approve 186-approval-create-strategy 187-approval-reject 188-approval-issues
185-approval-reject-after-approve
186-approval-create-strategy
187-approval-reject
188-approval-issues
189-issue-approvals 190-approval-create-400 191-approval-agent-decide-403 192-company-require-approval 193-agent-hire
189-issue-approvals
190-approval-create-400
191-approval-agent-decide-403
192-company-require-approval
193-agent-hire
194-agent-create-409-approval-required 195-company-unrequire-approval 196-agents-list-after-hire
194-agent-create-409-approval-required
195-company-unrequire-approval
196-agents-list-after-hire
197-approvals-list-all 198-agent-budget 199-cost-event 200-cost-event-agent-key 201-cost-event-400-negative
197-approvals-list-all
198-agent-budget
199-cost-event
200-cost-event-agent-key
201-cost-event-400-negative
202-cost-event-bad-agent 203-cost-event-other-company 204-cost-event-soft-80 205-budgets-overview-soft
202-cost-event-bad-agent
203-cost-event-other-company
204-cost-event-soft-80
205-budgets-overview-soft
206-cost-event-hard-100 207-agent-after-hard-stop 208-budgets-overview-hard 209-heartbeat-invoke-budget-paused
206-cost-event-hard-100
207-agent-after-hard-stop
208-budgets-overview-hard
209-heartbeat-invoke-budget-paused
210-checkout-budget-paused 211-agent-resume-budget-paused 212-approvals-after-hard-stop 213-budgets-overview-2~
210-checkout-budget-paused
211-agent-resume-budget-paused
212-approvals-after-hard-stop
213-budgets-overview-2~
214-budget-incident-resolve 215-agent-after-raise 216-company-budget 217-budget-policy-project 218-costs-summary
214-budget-incident-resolve
215-agent-after-raise
216-company-budget
217-budget-policy-project
218-costs-summary
219-costs-by-agent 220-costs-by-agent-model 221-costs-by-provider 222-costs-by-biller 223-costs-by-project
219-costs-by-agent
220-costs-by-agent-model
221-costs-by-provider
222-costs-by-biller
223-costs-by-project
224-costs-window-spend 225-costs-quota-windows 226-costs-finance-summary 227-issue-cost-summary 228-cost-summary-range
224-costs-window-spend
225-costs-quota-windows
226-costs-finance-summary
227-issue-cost-summary
228-cost-summary-range
229-dashboard 230-activity 231-activity-post 232-sidebar-badges 233-attention 235-timeline 236-routine-create
229-dashboard
230-activity
231-activity-post
232-sidebar-badges
233-attention
235-timeline
236-routine-create
237-routines-list 238-routine-get 239-routine-trigger-schedule 240-routine-trigger-bad-cron
237-routines-list
238-routine-get
239-routine-trigger-schedule
240-routine-trigger-bad-cron
241-routine-trigger-webhook 242-routine-run 243-routine-run-coalesce 244-routine-webhook-fire
241-routine-trigger-webhook
242-routine-run
243-routine-run-coalesce
244-routine-webhook-fire
245-routine-webhook-fire-401 246-routine-runs 247-routine-patch 248-secret-providers 249-secret-create
245-routine-webhook-fire-401
246-routine-runs
247-routine-patch
248-secret-providers
249-secret-create
250-secret-create-409 251-secrets-list 252-secret-rotate 253-agent-patch-secret-ref 254-secret-usage
250-secret-create-409
251-secrets-list
252-secret-rotate
253-agent-patch-secret-ref
254-secret-usage
255-secret-access-events 256-asset-image-upload 257-asset-content 258-company-logo 259-plugins-list
255-secret-access-events
256-asset-image-upload
257-asset-content
258-company-logo
259-plugins-list
260-plugins-examples 261-plugins-tools 262-plugins-ui-contributions 264-skills-list 265-skill-create
260-plugins-examples
261-plugins-tools
262-plugins-ui-contributions
264-skills-list
265-skill-create
266-skills-catalog 267-skills-index 268-skill-paperclip 269-environments 270-environments-capabilities
266-skills-catalog
267-skills-index
268-skill-paperclip
269-environments
270-environments-capabilities
271-execution-workspaces 272-llms-agent-configuration 273-llms-process 274-llms-icons 276-user-directory
271-execution-workspaces
272-llms-agent-configuration
273-llms-process
274-llms-icons
275-members
276-user-directory
277-invite-create
278-invite-get
279-invite-onboarding-txt
280-invite-accept-agent
281-join-requests
282-join-approve
283-join-claim-key
284-board-api-keys 287-sidebar-preferences 288-auth-profile 293-companies-after-import 296-import-bad-source-400
284-board-api-keys
285-board-api-key-create
286-cli-auth-challenge
287-sidebar-preferences
288-auth-profile
293-companies-after-import
296-import-bad-source-400
297-agent-key-revoke 298-agent-me-revoked-401 299-agent-terminate 300-agent-resume-terminated-409 301-goal-delete
297-agent-key-revoke
298-agent-me-revoked-401
299-agent-terminate
300-agent-resume-terminated-409
301-goal-delete
302-issue-delete~ 303-project-archive 304-agent-delete 305-secret-delete 306-company2-archive 307-company2-delete
302-issue-delete~
303-project-archive
304-agent-delete
305-secret-delete
306-company2-archive
307-company2-delete
`
