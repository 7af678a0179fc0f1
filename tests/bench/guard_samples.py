"""Made-up tokens in the published formats of their vendors, and the places where tokens are seen.

`{A36}` stands for 36 random letters and digits, `h` for hex digits, `U` for capital letters and digits, `l` for small
letters and digits, `w` for letters, digits, `_` and `-`, `b` for base64, `d` for digits, `H` for capital hex digits,
`u` for a UUID.
"""

from __future__ import annotations

import random
import re
import string
from pathlib import Path

_HEX = "0123456789abcdef"
_SETS = {
    "A": string.ascii_letters + string.digits,
    "h": _HEX,
    "U": string.ascii_uppercase + string.digits,
    "l": string.ascii_lowercase + string.digits,
    "w": string.ascii_letters + string.digits + "_-",
    "b": string.ascii_letters + string.digits + "+/",
    "d": string.digits,
    "a": string.ascii_letters,
    "H": _HEX.upper(),
}

FORMATS = """
github-pat ghp_{A36}
github-oauth gho_{A36}
github-user ghu_{A36}
github-server ghs_{A36}
github-refresh ghr_{A76}
github-fine-grained github_pat_{A22}_{A59}
gitlab-pat glpat-{w20}
gitlab-pat-routable glpat-{w27}.{l2}.{l9}
gitlab-deploy gldt-{w20}
gitlab-runner glrt-{w20}
gitlab-runner-routable glrt-t1_{w27}.{l2}.{l9}
gitlab-runner-registration GR1348941{w20}
gitlab-job glcbt-{l2}_{w20}
gitlab-trigger glptt-{h40}
gitlab-feed glft-{w20}
gitlab-mail glimt-{w25}
gitlab-agent glagent-{w50}
gitlab-oauth-secret gloas-{w64}
gitlab-scim glsoat-{w20}
gitlab-feature-flags glffct-{w20}
bitbucket-app-password ATBB{A32}
bitbucket-repo-token ATCTT3xFfGN0{w170}
bitbucket-server BBDC-{A44}
atlassian-api ATATT3xFfGF0{w180}
trello ATTA{h64}
npm npm_{A36}
pypi pypi-AgEIcHlwaS5vcmc{w150}
rubygems rubygems_{h48}
crates cio{A32}
nuget oy2{l43}
docker-pat dckr_pat_{w27}
docker-org dckr_oat_{w32}
clojars CLOJARS_{l60}
artifactory AKCp{A69}
artifactory-reference cmVmd{A59}
buildkite bkua_{h40}
circleci CCIPAT_{A22}_{h40}
circleci-project CCIPRJ_{A22}_{h40}
sonar-project sqp_{h40}
sonar-user squ_{h40}
sonar-global sqa_{h40}
harness pat.{A22}.{A24}.{A20}
octopus API-{U26}
pulumi pul-{h40}
terraform {A14}.atlasv1.{A67}
infracost ico-{A32}
postman PMAK-{h24}-{h34}
readme rdme_{l70}
prefect pnu_{A36}
sourcegraph sgp_{h16}_{h40}
sourcegraph-old sgp_{h40}
snyk-oauth snyk_uat.{h8}.{w80}
apify apify_api_{A36}
anthropic sk-ant-api03-{w93}AA
anthropic-admin sk-ant-admin01-{w93}AA
anthropic-oauth sk-ant-oat01-{w93}AA
openai sk-{A20}T3BlbkFJ{A20}
openai-project sk-proj-{w74}T3BlbkFJ{w74}
openai-service sk-svcacct-{w74}T3BlbkFJ{w74}
openrouter sk-or-v1-{h64}
deepseek sk-{h32}
langsmith lsv2_pt_{h32}_{h10}
langsmith-service lsv2_sk_{h32}_{h10}
langfuse sk-lf-{u}
groq gsk_{A52}
replicate r8_{A37}
perplexity pplx-{A48}
nvidia nvapi-{w64}
pinecone pcsk_{A6}_{A63}
huggingface hf_{a34}
huggingface-org api_org_{a34}
together tgp_v1_{w43}
fireworks fw_{A24}
xai xai-{A80}
cerebras csk-{l48}
elevenlabs sk_{h48}
voyage pa-{w43}
litellm sk-{w22}
langwatch sk-lw-{A48}
llamacloud llx-{A48}
factory fk-{w43}
cartesia sk_car_{A22}
browserbase bb_live_{w27}
novita sk_{w43}
retell key_{h28}
luma luma-{u}-{u}
fal {u}:{h32}
deepl {u}:fx
lmstudio sk-lm-{A8}:{A20}
e2b e2b_{h40}
friendli flp_{A40}
anyscale esecret_{A26}
modal ak-{A22}
unknown-vendor acme_live_{A40}
unknown-vendor-dash zyx-{A32}
jina jina_{h32}{A28}
tavily tvly-{A32}
firecrawl fc-{h32}
runpod rpa_{U40}{l6}
bedrock ABSK{b128}
bedrock-short bedrock-api-key-{b120}
cursor key_{h64}
wandb wandb_v1_{A70}
aws-access AKIA{U16}
aws-session ASIA{U16}
google-api AIza{w35}
google-oauth GOCSPX-{w28}
google-access ya29.{w120}
google-refresh 1//0{w60}
google-hmac GOOG1E{U55}
digitalocean dop_v1_{h64}
digitalocean-oauth doo_v1_{h64}
digitalocean-refresh dor_v1_{h64}
alibaba LTAI5t{A18}
tencent AKID{A32}
heroku HRKU-AA{w58}
heroku-uuid HRKU-{u}
fly-legacy fo1_{w43}
fly fm2_{b140}
vercel vcp_{A56}
netlify nfp_{A36}
render rnd_{A28}
cloudflare-origin v1.0-{h24}-{h146}
supabase sbp_{h40}
supabase-secret sb_secret_{w31}
neon napi_{l64}
planetscale pscale_tkn_{w43}
planetscale-password pscale_pw_{w43}
planetscale-oauth pscale_oauth_{w43}
mongodb-atlas mdb_sa_sk_{w40}
aiven AVNS_{w19}
clickhouse 4b1d{A38}
databricks dapi{h32}
databricks-suffix dapi{h32}-2
scalingo tk-us-{w48}
openshift sha256~{w43}
swarm SWMTKN-1-{l49}-{l25}
tailscale tskey-auth-{A12}-{A32}
tailscale-api tskey-api-{A12}-{A32}
azure-ad {A3}8Q~{A34}
azure-devops {A76}AZDO{A4}
azure-openai {A52}JQQJ99{A26}
azure-storage {b76}+ASt{b6}==
vault hvs.{w95}
vault-batch hvb.{w140}
doppler dp.pt.{A43}
doppler-service dp.st.prd.{A43}
doppler-cli dp.ct.{A43}
1password-secret A3-{U6}-{U11}-{U5}-{U5}-{U5}
1password-secret-six A3-{U6}-{U6}-{U5}-{U5}-{U5}-{U5}
1password-service ops_eyJ{b260}
age AGE-SECRET-KEY-1{U58}
okta 00{w40}
infisical st.{u}.{h32}.{h32}
bitwarden-secrets 0.{u}.{A30}:{b22}==
ory ory_pat_{A32}
arcjet ajkey_{l26}
persona persona_production_{w36}
onfido api_live.{w11}.{w32}
nightfall NF-{A32}
jwt-in-base64 ZXlKaGJHY2lPaUpJVXpJMU5pSjk{A80}
stytch secret-live-{w36}
gitpod gitpod_pat_{A36}
openvsx ovsxp_{u}
wakatime waka_{u}
aikido AIK_CI_{A36}
stackhawk hawk.{w20}.{w20}
veracode vera01ei-{h8}-{h24}
codesandbox csb_v1_{w43}
linkedin WPL_AP1.{A16}.{A8}
adobe p8e-{w32}
intra42 s-s4t2ud-{h64}
grafana-cloud glc_{b80}
grafana-service glsa_{A32}_{h8}
grafana-old eyJrIjoi{A90}
newrelic-user NRAK-{U27}
newrelic-browser NRJS-{h19}
newrelic-insert NRII-{w32}
newrelic-license {h36}NRAL
axiom xaat-{u}
axiom-personal xapt-{u}
datadog-client pub{h32}
coralogix cxtp_{A30}
logicmonitor lmb_{b60}
rootly rootly_{h64}
sentry-user sntryu_{h64}
sentry-org sntrys_eyJpYXQiO{b80}_{b43}
posthog-personal phx_{A43}
posthog-project phc_{A43}
honeycomb hcaik_{l58}
dynatrace dt0c01.{U24}.{U64}
launchdarkly sdk-{u}
launchdarkly-api api-{u}
mapbox sk.eyJ{A80}.{w22}
maxmind {A6}_{A29}_mmk
stripe-live sk_live_{A24}
stripe-test sk_test_{A24}
stripe-restricted rk_live_{A24}
stripe-webhook whsec_{A32}
square EAAA{w60}
square-oauth sq0atp-{w22}
square-secret sq0csp-{w43}
plaid access-sandbox-{u}
plaid-production access-production-{u}
razorpay rzp_live_{A14}
razorpay-test rzp_test_{A14}
paypal access_token$production${l16}${h32}
shippo shippo_live_{h40}
easypost EZAK{A54}
easypost-test EZTK{A54}
lob live_{h35}
mollie live_{A30}
gocardless live_{w40}
duffel duffel_test_{w43}
flutterwave FLWSECK_TEST-{h32}-X
paddle pdl_live_apikey_{l26}_{A22}_{A3}
xendit xnd_production_{A40}
mercadopago APP_USR-{d16}-{d6}-{h32}-{d9}
shopify shpat_{h32}
shopify-custom shpca_{h32}
shopify-partner shppa_{h32}
shopify-secret shpss_{h32}
woocommerce ck_{h40}
slack-bot xoxb-{d12}-{d13}-{A24}
slack-user xoxp-{d12}-{d12}-{d13}-{h32}
slack-app xapp-1-{U11}-{d13}-{h64}
slack-config xoxe.xoxp-1-{A163}
slack-refresh xoxe-1-{A146}
slack-webhook https://hooks.slack.com/services/T{U10}/B{U10}/{A24}
discord-webhook https://discord.com/api/webhooks/{d18}/{w68}
teams-webhook https://acme.webhook.office.com/webhookb2/{u}@{u}/IncomingWebhook/{h32}/{u}
zapier-webhook https://hooks.zapier.com/hooks/catch/{d7}/{l7}
telegram {d10}:AA{w33}
twilio SK{h32}
sendgrid SG.{w22}.{w43}
mailgun key-{h32}
mailgun-signing {h32}-{h8}-{h8}
mailchimp {h32}-us21
mandrill md-{w22}
brevo xkeysib-{h64}-{A16}
brevo-smtp xsmtpsib-{h64}-{A16}
resend re_{A8}_{A24}
mailersend mlsn.{h64}
twitch oauth:{l30}
telnyx KEY0{U33}_{A22}
pubnub sec-c-{b48}
smtp2go api-{h32}
porkbun sk1_{h64}
porkbun-public pk1_{h64}
backblaze K00{d1}{b27}
ably {A6}.{A6}:{w43}
hubspot pat-na1-{u}
intercom dG9rO{b55}=
typeform tfp_{w59}
onesignal os_v2_app_{l103}
airtable-key key{A14}
airtable-pat pat{A14}.{h64}
notion ntn_{d11}{A35}
notion-old secret_{A43}
linear lin_api_{A40}
figma figd_{w40}
contentful CFPAT-{w43}
frameio fio-u-{w64}
asana 2/{d16}/{d16}:{h32}
convex prod:happy-otter-{d3}|{h80}
brex bxt_{w40}
ramp ramp_tok_{A40}
crossmint sk_production_{A60}
dub dub_{A24}
clickup pk_{d8}_{U32}
rapidapi {l10}msh{l15}p1{l6}jsn{l12}
facebook EAAC{A160}
facebook-app {d15}|{w27}
twitter-bearer AAAAAAAAAAAAAAAAAAAAA{A90}
twitter-access {d19}-{A40}
dropbox sl.{w135}
dropbox-long {A11}AAAAAAAAAA{w43}
pinterest pina_{U60}
yandex-cloud AQVN{w36}
yandex-oauth y0_{w58}
vk vk1.a.{w100}
riot RGAPI-{u}
salesforce 00D{A15}!{A96}
settlemint sm_pat_{A16}
trigger tr_prod_{A20}
inngest signkey-prod-{h64}
aws-presigned https://b.s3.amazonaws.com/k?X-Amz-Credential=x&X-Amz-Signature={h64}
google-presigned https://storage.googleapis.com/b/k?X-Goog-Signature={h256}
azure-sas https://acct.blob.core.windows.net/c?sv=2024-11-04&sp=r&sig={A43}%3D
azure-logic-app https://prod-12.westus.logic.azure.com/workflows/{h32}/triggers/manual/paths/invoke?sp=x&sv=1.0&sig={w43}
infura https://mainnet.infura.io/v3/{h32}
alchemy-url https://eth-mainnet.g.alchemy.com/v2/{w32}
airtable-webhook https://hooks.airtable.com/workflows/v1/genericWebhook/app{A14}/wfl{A14}/wtr{A14}
openweather https://api.openweathermap.org/data/2.5/weather?q=x&appid={h32}
git-user-token https://{A40}@github.com/acme/shop.git
gemfury https://{A20}@pypi.fury.io/acme/
private-npm //npm.acme.dev/:_authToken={A40}
jwt eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJ{A60}.{w43}
"""

PLACES = (
    "{}",
    "export TOKEN={}",
    'curl -s -H "Authorization: Bearer {}" https://api.example.com/v1/me',
    "curl -H 'X-Api-Key: {}' https://api.example.com",
    '{{"auth": {{"value": "{}"}}}}',
    "credentials: {}",
    "deploy --env prod --with {} --yes",
    "I pasted {} into the settings page and it worked.",
    "client = connect('{}')",
    "https://api.example.com/hook?k={}&v=2",
    "docker run -e A={} app:latest",
    "Error: the server refused {} (403)",
    "echo {} | pass insert acme",
    "VALUE: `{}`",
)


# Passwords and keys that have no format: the text around the braces shows what they are.
CONTEXTS = """
Authorization: GenieKey {u}
Authorization: Splunk {u}
Authorization: DeepL-Auth-Key {u}:fx
Authorization: Key {u}:{h32}
Authorization: OAuth {A24}
Authorization: Api-Token {A18}
Authorization: sso-key {A12}_{A22}:{A22}
Authorization: PVEAPIToken=root@pam!mon={u}
Proxy-Authorization: Basic {b24}
Cookie: theme=dark; session={w40}
Set-Cookie: connect.sid=s%3A{w32}.{b43}; Path=/; HttpOnly
curl -b 'session={A32}' https://app.example.com/me
LOGDNA_KEY={h32} npm start
export ALGOLIA_ADMIN_KEY={h32}
env DUO_SKEY={A40} ./run
stripe_key: {A24}
DATADOG_KEY: {h32}
curl -H 'Ocp-Apim-Subscription-Key: {h32}' https://api.example.com
MJ_APIKEY_PRIVATE={h32} make mail
AZURE_DEVOPS_EXT_PAT={l52} az devops project list
curl -H 'x-honeycomb-team: {A22}' https://api.honeycomb.io
mapsKey: "{A32}"
my api key is {A32}
the new access token is {A40}.
Use password {A10}7{d1} for the staging admin
use {l6}{d2} as the password
the password is {l7}{d2}
pw: {l6}{d2}
password={a12}
DB_PASSWORD={A14}
<password>{A12}</password>
<add key="ApiKey" value="{A32}" />
machine api.example.com login me@example.com password {u}
db.example.com:5432:app:app:{A14}
gh secret set DEPLOY --body {A32}
echo 'root:{A9}{d1}' | sudo chpasswd
smbclient //srv/share -U user%{A9}{d1}
net user bob {A8}9! /add
echo {A9}{d1}! | sudo -S apt update
ConvertTo-SecureString "{A12}" -AsPlainText -Force
htpasswd -b users.htpasswd bob {A9}{d1}
mysql -uroot -p{A12} shop
sshpass -p {A9}{d1} ssh deploy@host
docker login -u me -p {A16} registry.example.com
redis-cli -a {A16} ping
PGPASSWORD={A11}{d1} psql -h db
postgresql://app:{A16}@db.example.com/app
vault kv put secret/x password={A11}{d1}
kubectl create secret generic x --from-literal=password={A11}{d1}
spring.datasource.password={A11}{d1}
{"password": "{A11}{d1}"}
"""
_WORDS = (
    "api web auth-service billing data_loader checkout gateway key-rotation token-refresh password-reset docs infra"
)
_FILES = (
    "src/auth/token.py lib/KeyManager.java config/secrets.example.yaml .env.example cmd/keygen/main.go docs/auth.md"
)
_EVERYDAY = Path(__file__).parent / "data" / "everyday.txt"


def contexts() -> list[str]:
    """The texts in which a credential shows by its place."""
    return CONTEXTS.strip().splitlines()


def everyday(each: int, source: random.Random) -> list[str]:
    """Everyday commands, lines of configuration and sentences without a credential."""
    return fill(_EVERYDAY.read_text(encoding="utf-8").splitlines(), each, source)


def fill(templates: list[str], each: int, source: random.Random) -> list[str]:
    """Texts from templates, with made-up names, numbers and random digits."""
    texts = []
    for template in templates:
        for _ in range(each):
            fillings = {
                "@w@": source.choice(_WORDS.split()),
                "@f@": source.choice(_FILES.split()),
                "@n@": str(source.randrange(1, 99)),
                "@n1@": str(source.randrange(1, 9)),
            }
            text = template
            for mark, filling in fillings.items():
                text = text.replace(mark, filling)
            texts.append(make(text, source))
    return texts


def kinds() -> list[tuple[str, str]]:
    """Each vendor's kind with its format."""
    rows = [line.split(None, 1) for line in FORMATS.strip().splitlines()]
    return [(kind, template) for kind, template in rows]


def make(template: str, source: random.Random) -> str:
    """A random token of that format."""

    def part(match: re.Match[str]) -> str:
        if match[3]:
            return "-".join("".join(source.choices(_HEX, k=size)) for size in (8, 4, 4, 4, 12))
        return "".join(source.choices(_SETS[match[1]], k=int(match[2])))

    return re.sub(r"\{(?:([AhUlwbdaH])(\d+)|(u))\}", part, template)
