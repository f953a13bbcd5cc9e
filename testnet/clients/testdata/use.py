"""Creates an issue with a client that was generated from the description of the API."""

import os

from generated import AuthenticatedClient
from generated.api.companies import post_api_companies
from generated.api.issues import get_api_issues_by_id, post_api_companies_by_company_id_issues
from generated.models import ApiCompanyRow, ApiCreatedIssue, ApiCreateTop, ApiNewCompany, ApiShownIssue, Error

client = AuthenticatedClient(base_url=os.environ["SELVAGE_API_URL"], token=os.environ["SELVAGE_API_KEY"], raise_on_unexpected_status=True)
company = post_api_companies.sync(client=client, body=ApiNewCompany(name="Generated Robotics"))
assert isinstance(company, ApiCompanyRow), company
made = post_api_companies_by_company_id_issues.sync(company.id, client=client, body=ApiCreateTop(title="Weld the arm"))
assert isinstance(made, ApiCreatedIssue), made
agent: str | None = made.assignee_agent_id
shown = get_api_issues_by_id.sync(made.identifier, client=client)
assert isinstance(shown, ApiShownIssue), shown
missing = get_api_issues_by_id.sync("NO-1", client=client)
assert isinstance(missing, Error), missing
print(shown.identifier, shown.status, agent, missing.error)
