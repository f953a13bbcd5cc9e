// All English texts of the board, by page: the one file to translate. Short main clauses; an error names
// what is wrong and what to do.
export const en = {
  app: 'Selvage',
  nav: {
    home: 'Home', inbox: 'Inbox', issues: 'Issues', agents: 'Agents', routines: 'Routines', projects: 'Projects', goals: 'Goals', org: 'Org',
    approvals: 'Approvals', costs: 'Costs', activity: 'Activity', skills: 'Skills', secrets: 'Secrets', work: 'Work', company: 'Company', mesh: 'Mesh',
    nodes: 'Nodes', ledger: 'Ledger', adapters: 'Adapters', models: 'Models', settings: 'Settings', companies: 'Companies', more: 'More',
    main: 'Main', skip: 'Skip to the page', run: 'Run', transfer: 'Import and export', memory: 'Memory', meshSettings: 'Mesh settings', members: 'People',
    governance: 'Governance', constitution: 'Constitution', decisions: 'Decisions', amendments: 'Amendments', permits: 'Permits', tree: 'Resource tree', rule: 'New rule', kernel: 'Kernel', processes: 'Processes', topics: 'Topics', cron: 'Cron', services: 'Services', messages: 'Messages', apps: 'Apps',
  },
  common: {
    beside: (what: string) => `${what} is open beside the list`, loading: 'Loading', retry: 'Try again', close: 'Close', cancel: 'Cancel', save: 'Save', undo: 'Undo', copy: 'Copy', copied: 'Copied', search: 'Search',
    none: 'None', all: 'All', more: 'Show more', back: 'Back', open: 'Open', create: 'Create', edit: 'Edit', remove: 'Remove', filter: 'Filter',
    copyCommand: 'Copy as command', yes: 'Yes', no: 'No', choose: 'Choose', nothingFound: 'Nothing matches', you: 'Board', unknown: 'unknown', actions: 'Actions',
  },
  line: {
    live: 'live', connecting: 'connecting', broken: 'reconnecting', lost: 'node lost', since: (s: string) => `since ${s}`,
    lostBanner: (node: string, age: string) => `${node} does not answer. What is on screen is ${age} old.`,
    searching: 'Asking the other nodes…', noneFound: 'No other node of this mesh can be reached from this browser. Start the node again, or open the board at another node.',
    found: (node: string) => `${node} answers.`, move: (node: string) => `Continue on ${node}`, draft: 'A text is not sent yet: copy it before you move.',
    moved: (from: string, to: string) => `${from} was lost. ${to} serves this page now.`,
    cutOff: (node: string, age: string) => `${node} hears no majority of the mesh. It takes no changes, and what it shows is ${age} old.`,
    slow: (ms: number) => `The node answers slowly (${ms} ms).`,
  },
  error: {
    title: 'This could not be loaded', lost: 'The node does not answer. What is on screen stays; it is tried again.',
    refused: 'Refused', forbidden: 'An administrator can change who may do this, under People.', conflict: 'Somebody else was faster.',
    conflictOwner: (who: string) => `${who} holds it now.`, kept: 'Nothing was changed.', momentary: (s: number) => `The node asks to wait ${s} s.`,
    notFound: 'There is no such thing here', notFoundWhy: 'The address is wrong, or it was deleted.', request: 'Request',
    page: 'This page broke', pageDo: 'Reload it. If it breaks again, the browser\'s console says where.',
    pending: 'The outcome is not known. Look before you repeat it.',
  },
  status: {
    backlog: 'backlog', todo: 'to do', in_progress: 'in progress', in_review: 'in review', blocked: 'blocked', done: 'done', cancelled: 'cancelled',
    idle: 'idle', running: 'running', active: 'active', paused: 'paused', error: 'error', terminated: 'terminated', pending_approval: 'pending approval',
    queued: 'queued', succeeded: 'succeeded', failed: 'failed', timed_out: 'timed out', scheduled_retry: 'retry scheduled',
    pending: 'pending', approved: 'approved', rejected: 'rejected', revision_requested: 'revision requested', archived: 'archived', planned: 'planned', achieved: 'achieved', completed: 'completed',
    alive: 'alive', dead: 'unreachable', revoked: 'revoked', open: 'open', cordoned: 'cordoned', draining: 'draining', ok: 'ok', note: 'note', warn: 'warning', bad: 'problem',
  } as Record<string, string>,
  priority: { critical: 'critical', high: 'high', medium: 'medium', low: 'low' } as Record<string, string>,
  switcher: { choose: 'Switch company', create: 'New company', all: 'All companies', name: 'Name', goal: 'What is it for?', prefix: 'Prefix of its issues', namePlaceholder: 'Acme Survey' },
  palette: {
    title: 'Find or do', placeholder: 'Type a page, an issue, an agent or an action', pages: 'Pages', issues: 'Issues', agents: 'Agents', actions: 'Actions', found: 'Found',
    newIssue: 'New issue', theme: 'Switch between light and dark', keys: 'Show the keys', copyCommand: 'Copy this page as a command', stop: 'Stop everything', resume: 'Resume everything',
    stopAsk: 'Stop all work on this mesh? Running runs are cancelled and no new ones begin until somebody resumes.', stopped: 'All work is stopped', resumed: 'Work goes on',
    pause: (name: string) => `Pause ${name}`, resumeAgent: (name: string) => `Resume ${name}`, paused: (name: string) => `${name} is paused`, resumedAgent: (name: string) => `${name} works again`,
  },
  keys: {
    title: 'Keys', palette: 'Find or do anything', newIssue: 'New issue', go: (page: string) => `Go to ${page}`, move: 'Next, previous row', open: 'Open the row', select: 'Select the row',
    done: 'Set to done', assign: 'Assign', close: 'Close what is open', help: 'Show the keys', search: 'Find in the list', drawer: 'Open beside the list',
  },
  home: {
    lately: 'Lately', needsYou: 'Needs you', moving: 'Moving', mesh: 'Mesh', nothingNeeds: 'Nothing needs you.', nothingNeedsWhy: 'Approvals, questions, budget stops and blocked issues appear here.',
    nothingMoves: 'No run is under way.', nothingMovesWhy: 'Runs begin when an agent has work or a routine is due.', giveWork: 'New issue', issuesByState: 'Issues by state',
    doneWeek: 'Done in 7 days', spend: 'Spent this month', noBudget: 'no budget', ofBudget: (b: string) => `of ${b}`, forecast: (m: string) => `${m} by month end at this rate`,
    held: (m: string) => `${m} held for calls under way`, runsPerDay: 'Runs a day', agents: 'Agents', leader: 'leader', voter: 'voter', follower: 'follower', runs: (n: number) => `${n} ${n === 1 ? 'run' : 'runs'}`,
    doctor: 'Doctor', healthy: 'All checks are good.', approve: 'Approve', reject: 'Reject', look: 'Open', pendingNode: (name: string) => `${name} asks to join`,
    noCompany: 'No company yet', noCompanyWhy: 'A company is a goal, its agents and their work. Make the first one; agents and issues come next.', meshForAdmins: 'Only administrators see the mesh.',
    since: (t: string) => `for ${t}`, approved: 'Approved', rejected: 'Rejected', noLine: 'no output yet', of: 'of', byMonthEnd: 'by month end at this rate', otherRuns: 'other',
  },
  issues: {
    title: 'Issues', one: 'issue', many: (n: string) => `${n} issues`, create: 'New issue', find: 'Find in titles', status: 'Status', assignee: 'Assignee', priority: 'Priority', project: 'Project',
    open: 'Open', allStatus: 'All', empty: 'No issues', emptyWhy: 'An issue is a piece of work for an agent or a person.', noMatch: 'No issue matches the filter', clear: 'Clear the filter', titleField: 'Title',
    description: 'Description', unassigned: 'Nobody', created: (id: string) => `${id} was created`, changed: (id: string, what: string) => `${id}: ${what}`, selected: (n: number) => `${n} selected`, setStatus: 'Set status',
    setAssignee: 'Assign to', clearSelection: 'Clear', updated: 'Changed', openPage: 'Open the page', key: 'ID', limited: (n: string) => `The first ${n} are shown: filter to see others.`, csv: 'Export as CSV',
    list: 'List', board: 'Board', setPriority: 'Set priority', setProject: 'Set project', moreCards: (n: string) => `${n} more: filter to see them`, titleNeeded: 'Title: required',
  },
  issue: {
    commentBy: (who: string) => `Comment of ${who}`, noDescription: 'No description.', thread: 'Thread', write: 'Write a comment…', send: 'Comment', sendHint: 'Ctrl/⌘ Enter sends', properties: 'Properties', subIssues: 'Sub-issues', relations: 'Relations', runs: 'Runs',
    cost: 'Cost', createdBy: 'Created by', created: 'Created', updated: 'Updated', blockedBy: 'Blocked by', blocks: 'Blocks', parent: 'Part of', chain: 'Chain entry', showAll: (n: number) => `Show ${n} earlier entries`,
    run: (status: string) => `run ${status}`, changed: 'changed', addSub: 'Add a sub-issue', labels: 'Labels', deleted: 'This comment was deleted.', system: 'system', conflict: 'The issue was not changed', tokens: 'Tokens',
    commented: 'commented', goal: 'Goal', editText: 'Edit the text', setLabels: 'Set labels', makeLabels: 'Make labels in the settings', addBlocker: 'Add what it waits for', removeBlocker: (id: string) => `It no longer waits for ${id}`, checkOut: (name: string) => `Check out for ${name}`, verify: 'Look at the entry',
  },
  run: {
    transcript: 'Transcript', raw: 'Raw log', find: 'Find in the log', hits: (at: number, of: number) => `${at} of ${of}`, noHit: 'not found', next: 'Next', previous: 'Previous', follow: 'Follow the end',
    nothing: 'It wrote nothing', nothingYet: 'It has written nothing yet', nothingWhy: 'Lines appear here as the program writes them.', gone: 'The log is no longer kept, or the node that had it is gone.',
    dropped: (n: string) => `${n} earlier lines are not shown: the raw log has them.`, thinking: 'thinking', prompt: 'prompt', runs: 'works…', noResult: 'no result', size: (lines: string, size: string) => `${lines} ${lines === '1' ? 'line' : 'lines'} · ${size}`, input: 'Call', result: 'Result',
    facts: 'Facts', status: 'State', agent: 'Agent', issue: 'Issue', began: 'Began', lasted: 'Lasted', node: 'Node', model: 'Model', tokens: 'Tokens', tokensOf: (i: string, c: string, o: string) => `${i} in, ${c} cached, ${o} out`, cost: 'Cost', costTold: 'as its program told', tools: 'Tool calls', exit: 'Exit code', session: 'Session',
    why: 'Why it began', source: { timer: 'a timer was due', assignment: 'an issue was assigned', on_demand: 'somebody asked for it', automation: 'an automation asked for it' } as Record<string, string>, by: (who: string) => `by ${who}`, reason: 'Reason', comment: 'a comment woke it', retryOf: 'Retry of', retriedBy: 'Retried by', retryAt: 'Next try',
    where: 'Why on this node', load: 'load', score: 'score', scoreWhy: 'The lowest score wins: load and slots in use, in thousandths.', notPlaced: 'It is not placed yet.', noRecord: 'No record says why: it is older than what the scheduler keeps.', omitted: (n: number) => `${n} more nodes`, lease: 'Lease', leaseHeld: (n: string) => `held by ${n}, renewed with each beat`, leaseOver: 'given back', waits: 'Waits',
    checkout: 'Checkout', none: 'none', directory: 'Directory', repository: 'Repository', branch: 'Branch', files: 'Files it changed', steps: 'Steps', operations: 'In its workspace',
    cancel: 'Cancel the run', cancelAsk: 'Cancel this run?', cancelBody: 'Its program is stopped now. What it changed in files stays; the issue stays assigned.', cancelled: 'The run is cancelled', retry: 'Run again', retried: 'It runs again', download: 'Save the raw log', liveNow: 'live',
  },
  agents: {
    title: 'Agents', hire: 'Hire an agent', find: 'Find by name or role', grid: 'Grid', list: 'List', all: 'All states', empty: 'No agents', emptyWhy: 'An agent works on issues with a program or a model. Hire the first one.', noMatch: 'No agent matches the filter', name: 'Name', role: 'Role', status: 'State', adapter: 'Adapter', spent: 'Spent this month', last: 'Last seen', reports: 'Reports to', doing: 'Doing', nothing: 'nothing now',
    titleField: 'Title', program: 'What it runs with', present: 'Where it can run', presentOn: (n: string) => `${n}: ready`, lacks: 'missing', looking: 'Asking the nodes…', fillFirst: 'Fill in what is marked with * first: then the nodes are asked.', nowhere: 'No node can run it yet. You may hire now and install it later: its runs wait until then.', config: 'Configuration', budget: 'Budget a month in dollars', budgetHint: '0 is no limit', nobody: 'Nobody', hired: (n: string) => `${n} is hired`, asked: (n: string) => `${n} waits for an approval`, nameNeeded: 'Name: required', prompt: 'Instructions', many: (n: string) => `${n} agents`, of: (a: string, b: string) => `${a} of ${b}`,
  },
  agent: {
    overview: 'Now', config: 'Configuration', runs: 'Runs', instructions: 'Instructions', skills: 'Skills', sessions: 'Sessions', keys: 'Keys', revisions: 'Revisions', pause: 'Pause', resume: 'Resume', invoke: 'Run now', invoked: 'A run is asked for', more: 'More',
    terminate: 'Terminate', terminateAsk: (n: string) => `Terminate ${n}?`, terminateBody: 'Its keys end, its runs are cancelled and it never works again. Its history stays.', terminated: (n: string) => `${n} is terminated`, clearError: 'Clear the error', approve: 'Approve the hire', reset: 'Forget its session', resetDone: 'The next run begins a new session',
    doing: 'What it does now', idle: 'Nothing: no run is under way.', nextWake: 'Next wake', wakeTimer: (t: string) => `by its timer, every ${t}`, wakeDemand: 'when an issue is assigned or somebody asks', wakePaused: 'never while it is paused', due: 'due now', pending: 'Waiting wakes', facts: 'Facts', manager: 'Reports to', env: 'Adapter', hiredAt: 'Hired', lastSeen: 'Last run', budget: 'Budget this month', noBudget: 'no limit', setBudget: 'Set', budgetSet: 'The budget is set', pausedFor: (r: string) => `paused: ${r}`,
    month: 'Its month', runsDay: 'Runs', otherRuns: 'under way or cancelled', success: 'Success', money: 'Money', issuesDone: 'Issues done', runsWords: (n: number) => `${n} ${n === 1 ? 'run' : 'runs'} in 30 days`, successWords: (p: string, f: number) => `${p} ended well, ${f} did not`, moneyWords: 'in 14 days', doneWords: (n: number) => `${n} done in 30 days`, noRuns: 'No run yet', noRunsWhy: 'Give it an issue, or press "Run now".', limited: (n: number) => `The last ${n} runs are counted.`,
    issue: 'Issue', began: 'Began', lasted: 'Lasted', why: 'Why', node: 'Node', save: 'Look at the change', saveTitle: 'Change the configuration?', saved: 'The configuration is changed', unchanged: 'Nothing is changed yet', apply: 'Change it', who: 'Who it is', timer: 'Timer', timerOn: 'Wake it by time', interval: 'Every so many seconds', capabilities: 'What it is good at', program: 'Program', otherAdapter: 'The fields below are those of the new adapter.',
    noRevisions: 'No revisions', noRevisionsWhy: 'Each change of the configuration is kept here, and can be taken back.', restore: 'Restore', inForce: 'in force', beforeAll: 'Before all these changes', hasSecrets: 'It holds hidden values: change it by hand.', rollbackAsk: 'Take the configuration back?', rolledBack: 'The configuration is as it was', changed: 'Changed', source: { patch: 'changed', rollback: 'taken back', create: 'made' } as Record<string, string>,
    noKeys: 'No keys', noKeysWhy: 'With a key a program works as this agent over the API. Runs get their own without one.', newKey: 'New key', keyName: 'Name of the key', keyMade: 'The key is shown once', keyMadeWhy: 'Copy it now: only its hash is kept.', revoke: 'Revoke', revokeAsk: (n: string) => `Revoke the key ${n}?`, revokeBody: 'Programs that use it are refused from now on.', revoked: 'revoked', active: 'active', created: 'Created',
    noSessions: 'No sessions', noSessionsWhy: 'Programs that remember a conversation keep it under the issue they work on.', task: 'For', session: 'Session', lastRun: 'Last run', noSkills: 'No skills', skillsUnsupported: 'Its adapter takes no skills.', desired: 'wanted', add: 'Add a skill', removed: 'The skill is removed', added: 'The skill is added',
    noFiles: 'No instructions in the mesh', noFilesWhy: 'They are what the agent is told before each task. Write the first file.', write: 'Write AGENTS.md', entry: 'entry', saveFile: 'Save', savedFile: 'Saved', readOnly: 'This file cannot be changed here.', tokens: 'Tokens in all', cost: 'Money in all',
  },
  asked: {
    kind: { ask_user_questions: 'Questions', request_confirmation: 'Confirmation', request_checkbox_confirmation: 'Choice', suggest_tasks: 'Suggested tasks', request_item_verdicts: 'Verdicts' } as Record<string, string>, verdict: { approve: 'Approve', reject: 'Reject', defer: 'Later' } as Record<string, string>,
    accept: { request_confirmation: 'Confirm', request_checkbox_confirmation: 'Confirm', suggest_tasks: 'Make the tasks', request_item_verdicts: 'Judge' } as Record<string, string>, answer: 'Answer', reject: 'Reject', reallyReject: (l: string) => `${l}: sure`, reason: 'Reason', other: 'Something else', answered: 'Answered', refused: 'Rejected',
    answerFirst: (q: string) => `Still open: ${q}`, atLeast: (n: number) => `Choose at least ${n}`, atMost: (n: number) => `Choose at most ${n}`, chooseTask: 'Choose at least one task', waiting: 'Asked here',
  },
  inbox: {
    kind: 'Kind', kinds: { approval: 'approval', issue_thread_interaction: 'question', budget_alert: 'budget', agent_error_alert: 'agent error', failed_run: 'failed run', waiting_run: 'waiting run', blocker_attention: 'blocked', recovery_action: 'recovery', review: 'review', join_request: 'asks to join' } as Record<string, string>,
    keys: 'a approve · r reject · e dismiss · z tomorrow · Enter open', empty: 'Nothing waits for you', first: (n: string, of: string) => `The first ${n} of ${of}. The others come up as these are handled.`, emptyWhy: 'Approvals, questions, blocked issues, failed runs and budget stops appear here.', dismiss: 'Dismiss', dismissed: 'Dismissed', snoozed: 'It comes back tomorrow', lookRun: 'Open the run', lookAgent: 'Open the agent',
  },
  approvals: {
    one: 'Approval', what: 'What', type: 'Kind', by: 'Asked by', asked: 'Asked', status: 'State', decided: 'Decided', decidedBy: 'By', note: 'Note', agent: 'Agent', waits: 'What happens when it is approved', did: 'What was approved', noteField: 'Note to who asked', noteFirst: 'Say in the note what is to be changed', revise: 'Ask for a revision', sentBack: 'Sent back for a revision', newLimit: 'New limit in dollars', proposed: 'is proposed',
    comments: 'Comments', refused: (e: string) => `It was approved and could not be carried out: ${e}`, keys: 'a approve · r reject · Enter open', empty: 'No approvals', emptyWhy: 'What agents may not do alone waits here for a person.', many: (n: string) => `${n} approvals`,
  },
  costs: {
    limits: 'Limits', limit: 'Limit', noLimits: 'No limits', noLimitsWhy: 'A limit stops an agent, a project or the company before it spends more. Set the first one.', newPolicy: 'Set a limit', raise: 'Raise', raised: 'The limit is raised', saved: 'The limit is set', spentOf: (a: string, b: string) => `${a} of ${b} is spent`, forecast: (m: string) => `${m} at the end at this rate`, stopped: 'stopped', soft: 'only warns', stoppedWhy: (m: string) => `Work is stopped: ${m} is spent. A limit above that lets it go on.`,
    window: { calendar_month_utc: 'a month', calendar_week_utc: 'a week', calendar_day_utc: 'a day', rolling_24h: '24 hours', rolling_7d: '7 days', rolling_30d: '30 days', lifetime: 'for good' } as Record<string, string>, windowField: 'For', scope: 'Of', warnAt: 'Warn at so many per cent', hardStop: 'Stop work at the limit', positive: 'Limit: more than 0',
    spent: 'Spent', span: 'Days', thisMonth: 'This month', days: (n: number) => `${n} days`, by: 'Divided by', bys: { agent: 'Agent', project: 'Project', model: 'Model', provider: 'Provider' } as Record<'agent' | 'project' | 'model' | 'provider', string>, others: 'others', cost: 'Cost', input: 'Tokens in', cached: 'Cached', output: 'Tokens out', share: 'Share', total: 'Total', noProject: 'without a project', nothing: 'Nothing was spent', nothingWhy: 'Costs appear here when models are called or programs tell of them.',
  },
  attached: {
    documents: 'Documents', newDocument: 'Write a document', revision: (n: number) => `revision ${n}`, locked: 'locked', text: 'Text', changes: 'Changes', key: 'Key', keyHint: 'Small letters, digits and dashes: plan, notes-2', files: 'Attachments', attach: 'Attach files', removeAsk: (n: string) => `Remove ${n}?`, removeBody: 'The file is deleted from all nodes that keep it.',
    chain: 'Chain entries', verify: 'Verify', linked: 'Linked to the entry before, and names this issue', notLinked: 'It does not name the hash of the entry before', notNamed: 'The entry does not name this issue', more: (n: number) => `${n} earlier entries are in the ledger.`,
  },
  nodes: {
    title: 'Nodes', map: 'Map of the mesh', name: 'Node', status: 'State', role: 'Role', runs: 'Runs', version: 'Version', address: 'Address', labels: 'Labels', scheduling: 'New runs', joined: 'Joined', here: 'this page',
    requests: 'Asking to join', noRequests: 'No node asks to join.', approve: 'Approve', refuse: 'Refuse', code: 'Code', compare: 'Approve only if the node shows the same code.', approved: (n: string) => `${n} is let in`, refused: (n: string) => `${n} was refused`,
    doctor: 'What the doctor found', do: 'Do', tolerance: (n: number) => (n === 0 ? 'No node may die without a stop' : n === 1 ? '1 node may die' : `${n} nodes may die`), height: 'Height', term: 'Term',
    cordon: 'Take no new runs', uncordon: 'Take new runs again', emptyWhy: 'Only administrators see the nodes.', cordoned: (n: string) => `${n} takes no new runs`, uncordoned: (n: string) => `${n} takes new runs again`,
  },
  signin: { title: 'Sign in', email: 'Email', password: 'Password', submit: 'Sign in', signUp: 'Make an account', name: 'Your name', have: 'I have an account', none: 'I have no account', claim: 'This mesh has no administrator yet', claimWhy: 'Make an account; then prove that you run this mesh with its claim code.', claimCode: 'Claim code', claimHow: 'The file claim-code in the node\'s data directory holds it.', claimSubmit: 'Become administrator', out: 'Sign out', wait: 'Too many attempts.' },
  activity: { when: 'When', who: 'Who', what: 'What', about: 'About', filter: 'Filter…', height: 'Entry', empty: 'Nothing has happened yet', emptyWhy: 'Every change of the company is a line here.', first: (n: number) => `The newest ${n} lines` },
  goals: { title: 'Goal', level: 'Level', owner: 'Owner', status: 'Status', empty: 'No goals yet', emptyWhy: 'Issues and projects serve goals; goals form a tree.', create: 'New goal', above: 'Under', removeAsk: (n: string) => `Remove the goal ${n}?`, removeBody: 'Goals below it stay, with nothing above them.' },
  projects: { name: 'Project', lead: 'Lead', issues: 'Issues', target: 'Target', status: 'Status', empty: 'No projects yet', emptyWhy: 'A project groups issues, and may have a folder and a budget.', create: 'New project' },
  routines: { name: 'Routine', assignee: 'Assignee', next: 'Next', last: 'Last run', status: 'Status', trigger: 'Trigger', empty: 'No routines yet', emptyWhy: 'A routine makes an issue on a schedule, by a webhook or when somebody starts it.', run: 'Run now', started: (n: string) => `${n} is started`, webhook: 'webhook', byHand: 'by hand' },
  org: { empty: 'No agents yet', emptyWhy: 'The chart shows who reports to whom.', reports: (n: number) => (n === 1 ? '1 report' : `${n} reports`), fold: 'Fold', unfold: 'Unfold' },
  ledger: {
    height: 'Entry', kind: 'Kind', actor: 'Actor', outcome: 'Outcome', outcomes: { applied: 'applied', denied: 'denied', deferred: 'deferred' } as Record<string, string>, time: 'When', changes: 'Changes', hash: 'Hash', previous: 'Hash before', payload: 'Payload hash', credential: 'Credential', find: 'Kind, actor or ID', verify: 'Let the node check it',
    checkHere: 'Check the whole chain', checkFrom: 'Check from here to the newest', checkWhy: 'Hashes and signatures are computed in this browser.', upTo: (at: string, of: string) => `${at} of ${of} entries`, holds: (batches: string, entries: string, signed: string) => `It holds: ${entries} entries in ${batches} batches, ${signed} signatures`,
    noEd25519: 'This browser cannot check Ed25519: the signatures were not checked', unchecked: (n: number) => `${n} signatures were not checked: their keys are not known`, sinceLast: (height: string) => `It goes on from entry ${height}, where the last check ended`, rewritten: (height: number) => `entry ${height} is another one than at the last check`, shorter: (was: number, is: number) => `it had ${was} entries at the last check and has ${is} now`,
    brokenAt: (height: number, why: string) => `It is broken at entry ${height}: ${why}`, badAt: (h: number) => `Entry ${h} does not hold: selvage ledger verify says more`, verified: (n: number) => `The node checked ${n} entries: hashes and signatures hold`, empty: 'No entries', emptyWhy: 'Only administrators see the chain.', newest: (n: number) => `The newest ${n} entries were searched.`, missing: 'the node does not have it',
    hashHere: 'Its hash, computed here, is the one shown', hashWrong: 'Its hash, computed here, is another one', linkHere: 'It names the hash of the entry before', linkWrong: 'It does not name the hash of the entry before', signedBy: (node: string) => `Signed by ${node}; the signature holds`, unsigned: 'The signature was not checked: its key, or Ed25519 in this browser, is missing',
  },
  start: {
    title: 'First steps', steps: ['Name the company', 'Say who works', 'Give the first task', 'Watch it run'] as const, leave: 'Go on later', hello: 'This mesh has no company yet. Make the first one, or begin with one that is ready.',
    goalPlaceholder: 'Build a robot that folds towels', make: 'Make the company', import: 'Import a package', starters: 'Or begin with a company that is ready', starterHas: (agents: number, issues: number) => `${agents} agents, ${issues} ${issues === 1 ? 'task' : 'tasks'}`, begin: (name: string) => `Begin with ${name}`,
    named: (name: string, prefix: string) => `${name}; its issues are called ${prefix}-1 and so on`, works: (names: readonly string[]) => names.join(', '), given: (id: string) => id,
    ceoName: 'Name of the first agent, who leads', ceoTitle: 'Chief Executive', ceoDoes: 'Breaks the company\'s goal down, hires who is missing, and asks the board for what it may not decide itself.', with: 'What do its agents work with?', hire: (name: string) => `Hire ${name}`, employ: 'Let them work with this', testing: 'It is tested first…',
    demo: 'A demo', demoWhere: 'needs no model: it reports what it sees', on: (nodes: string) => `on ${nodes}`, keyOf: (node: string) => `a key in the environment of ${node}: it is kept, sealed`, noModel: (name: string) => `${name} has no model that answers in words: add one, or choose another way`,
    lacking: (names: readonly string[]) => `On no node: ${names.join(', ')}. What is missing?`, fine: 'Nothing is missing.', idle: (names: readonly string[], adapter: string) => `${names.join(', ')} run on ${adapter}, and no node has it`,
    firstTask: 'Propose a strategy', ourGoal: (goal: string) => `Our goal: ${goal}`, give: (name: string) => `Give it to ${name}`, run: 'Its run', waits: 'The run begins in a moment.', over: 'The first task is over.', home: 'See the company',
    goOn: 'The first steps are not over', goOnWhy: (agents: number) => (agents === 0 ? 'Nobody works here yet.' : 'There is no work yet.'), goOnDo: 'Go on',
  },
  transfer: {
    import: 'Import', export: 'Export', exportWhy: 'A package holds the company as text files: another mesh, or a company here, takes it in. Values of secrets, local paths and commands of this machine are never part of it.', parts: 'Parts', part: { company: 'Company and goals', agents: 'Agents', projects: 'Projects', issues: 'Issues', skills: 'Skills' },
    holds: (n: string) => `${n} files`, counts: (c: { agents: number; projects: number; issues: number; skills: number }) => `${c.agents} agents, ${c.projects} projects, ${c.issues} issues, ${c.skills} skills`, save: 'Save as zip', saved: (name: string) => `${name} is saved`, binary: 'No text', more: (n: number) => `${n} more files are not listed`,
    from: 'From', zip: 'A zip file', file: 'File', url: 'Address of the repository', into: 'Into', newCompany: 'A new company', name: 'Name', nameHint: 'Empty: the name of the package', collision: 'What is there already', collisions: { rename: 'Add under another name', skip: 'Leave as it is', replace: 'Replace' }, look: 'Show what would happen', apply: 'Import', would: (what: string, name: string) => (name ? `${what}: ${name}` : what),
    companyActions: { create: 'A new company', update: 'A company is changed', none: 'The company stays as it is' } as Record<string, string>, kind: 'Kind', kinds: { agent: 'Agent', project: 'Project', issue: 'Issue' } as Record<string, string>, as: 'As', action: 'What happens', actions: { create: 'is made', update: 'is changed', skip: 'is left out' } as Record<string, string>, reason: 'Why',
    variable: (key: string, of: string, need: string) => `${of ? `${of}: ` : ''}${key} has no value yet (${need})`, fillIn: (setting: string, name: string) => `${name} needs its ${setting}:`, done: (name: string, agents: number, projects: number) => `${name}: ${agents} agents and ${projects} projects came in`,
  },
  invite: {
    title: (company: string) => `Join ${company}`, as: (by: string, role: string) => `${by || 'The board'} invites you${role ? ` as ${role}` : ''}.`, roles: { owner: 'owner', admin: 'administrator', operator: 'operator', viewer: 'viewer, who looks and changes nothing' } as Record<string, string>, until: 'It is good until', signedIn: (who: string) => `You are signed in as ${who}.`, join: 'Join', signIn: 'Sign in, or make an account', asked: 'You have asked to join. Somebody of the company has to approve it.',
  },
  theme: { light: 'Light', dark: 'Dark', system: 'As the system' },
  part: { sort: 'Sort', selectAll: 'Select all', rows: (n: number) => `${n} rows`, value: 'Value', addRow: 'Add', added: 'added', removed: 'removed', unchanged: (n: number) => `${n} unchanged lines`, secret: 'hidden', invalidJson: 'This is no valid JSON', required: (name: string) => `${name}: required` },
}

/** The catalogue in use; another language is another file of the same type. */
export const t = en
export type Texts = typeof en

export const statusText = (status: string): string => t.status[status] ?? status.replace(/_/g, ' ')
