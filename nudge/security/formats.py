"""Published formats of vendor tokens: what one starts with, which characters follow, and how many.

Plain data, so that a format is one line. `find_tokens` looks where a long word begins and asks a dictionary of
prefixes; compiling 500 alternatives into one pattern would cost a hook more than its whole budget. `re` is imported
for a text that has the mark of a shape only: that takes half as long as starting Python.
"""

from __future__ import annotations

from itertools import pairwise

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Iterator

_DIGITS = "0123456789"
_LOWER = "abcdefghijklmnopqrstuvwxyz"
_UPPER = _LOWER.upper()

HEX = _DIGITS + "abcdef"
HEXES = HEX + "ABCDEF"
LOWER = _LOWER + _DIGITS
UPPER = _UPPER + _DIGITS
ALNUM = _LOWER + _UPPER + _DIGITS
WORD = ALNUM + "_-"
DOTTED = WORD + ".="
BASE64 = ALNUM + "+/=_-"
UUID = HEXES + "-"

ANY = 1_000_000
_LONG_BODY = 64

# (kind, prefixes, characters, fewest, most). The prefixes of a row share everything else.
FORMATS: tuple[tuple[str, tuple[str, ...], str, int, int], ...] = (
    # Code hosting, packages, builds
    ("github-token", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), ALNUM, 20, ANY),
    ("github-token", ("github_pat_",), WORD, 20, ANY),
    (
        "gitlab-token",
        (
            *("glpat-", "gldt-", "glrt-", "glrtr-", "glcbt-", "glptt-", "glft-", "glimt-", "glagent-", "gloas-"),
            *("glsoat-", "glffct-", "glwt-", "GR1348941"),
        ),
        DOTTED,
        16,
        ANY,
    ),
    ("bitbucket-token", ("ATBB",), ALNUM, 24, ANY),
    ("bitbucket-token", ("BBDC-",), BASE64, 30, ANY),
    ("atlassian-token", ("ATATT3", "ATCTT3", "ATSTT3", "ATOA"), DOTTED, 24, ANY),
    ("trello-token", ("ATTA",), HEXES, 56, ANY),
    ("npm-token", ("npm_",), ALNUM, 36, ANY),
    ("pypi-token", ("pypi-AgE", "pypi-AgN"), WORD, 20, ANY),
    ("rubygems-token", ("rubygems_",), HEX, 40, ANY),
    ("crates-token", ("cio",), ALNUM, 32, 32),
    ("nuget-key", ("oy2",), LOWER, 43, 43),
    ("docker-token", ("dckr_pat_", "dckr_oat_"), WORD, 20, ANY),
    ("clojars-token", ("CLOJARS_", "clojars_"), ALNUM, 40, ANY),
    ("packagist-token", ("packagist_",), ALNUM + "_", 32, ANY),
    ("artifactory-token", ("AKCp",), ALNUM, 60, ANY),
    ("artifactory-token", ("cmVmd",), ALNUM, 50, ANY),
    ("buildkite-token", ("bkua_", "bkpi_", "bkct_", "bkaj_", "bkcq_", "bkpat_"), ALNUM, 32, ANY),
    ("circleci-token", ("CCIPAT_", "CCIPRJ_"), WORD, 40, ANY),
    ("sonar-token", ("sqp_", "squ_", "sqa_", "sqb_"), ALNUM, 40, ANY),
    ("harness-token", ("pat.", "sat."), WORD + ".", 60, ANY),
    ("octopus-key", ("API-",), UPPER, 25, 32),
    ("pulumi-token", ("pul-",), HEX, 40, ANY),
    ("snyk-token", ("snyk_uat.", "snyk_sat."), DOTTED, 24, ANY),
    ("socket-token", ("sktsec_",), DOTTED, 30, ANY),
    ("sourcegraph-token", ("sgp_", "sgd_", "slk_"), ALNUM + "_", 40, ANY),
    ("phabricator-token", ("api-", "cli-"), LOWER, 28, 28),
    ("jetbrains-token", ("perm:", "perm-"), BASE64 + ".", 40, ANY),
    ("weblate-token", ("wlu_", "wlp_"), ALNUM, 30, ANY),
    ("deno-token", ("ddp_", "ddo_"), ALNUM, 30, ANY),
    ("chromatic-token", ("chpt_",), ALNUM, 12, ANY),
    ("depot-token", ("depot_project_", "depot_org_", "depot_user_"), ALNUM, 30, ANY),
    ("valtown-token", ("vtwn_",), ALNUM, 20, ANY),
    ("apify-token", ("apify_api_", "apify_proxy_"), ALNUM, 24, ANY),
    ("infracost-token", ("ico-",), ALNUM, 32, 32),
    ("postman-key", ("PMAK-", "PMAT-"), UUID + _UPPER + _LOWER, 24, ANY),
    ("readme-token", ("rdme_",), ALNUM, 50, ANY),
    ("prefect-token", ("pnu_", "pnb_"), ALNUM, 36, ANY),
    ("dbt-token", ("dbtc_", "dbtu_"), WORD + "=", 30, ANY),
    ("retool-token", ("retool_",), WORD, 24, ANY),
    ("gitpod-token", ("gitpod_pat_",), DOTTED, 24, ANY),
    ("codesandbox-token", ("csb_v1_",), WORD, 30, ANY),
    ("openvsx-token", ("ovsxp_", "ovsxat_"), UUID, 30, ANY),
    ("wakatime-key", ("waka_", "waka_sec_", "waka_tok_"), WORD, 32, ANY),
    ("thunderstore-token", ("tss_",), ALNUM, 30, ANY),
    ("aikido-token", ("AIK_CI_", "AIK_SECRET_", "AIK_RUNTIME_"), ALNUM + "_", 20, ANY),
    ("endorlabs-key", ("endr+",), ALNUM, 16, ANY),
    ("stackhawk-key", ("hawk.",), WORD + ".", 36, ANY),
    ("veracode-key", ("vera01ei-", "vera01es-", "vera01gi-", "vera01gs-"), UUID, 32, ANY),
    ("raycast-token", ("rca_",), ALNUM, 30, ANY),
    ("devcycle-key", ("dvc_server_", "dvc_mobile_", "dvc_client_"), WORD, 24, ANY),
    ("blockprotocol-key", ("b10ck5.",), HEXES + ".-", 40, ANY),
    ("oculus-token", ("OC|",), ALNUM + "|", 30, ANY),
    ("rootly-key", ("rootly_",), HEX, 40, ANY),
    ("localstack-token", ("ls-",), ALNUM + "-", 24, 60),
    # Models and their tools
    ("anthropic-key", ("sk-ant-",), WORD, 16, ANY),
    ("openai-key", ("sk-proj-", "sk-svcacct-", "sk-admin-", "sk-None-", "sk-service-"), WORD, 20, ANY),
    ("openrouter-key", ("sk-or-",), WORD, 20, ANY),
    ("langfuse-key", ("sk-lf-", "pk-lf-"), UUID, 32, ANY),
    ("helicone-key", ("sk-helicone-", "pk-helicone-"), WORD, 20, ANY),
    ("langwatch-key", ("sk-lw-", "pk-lw-"), WORD, 20, ANY),
    ("openai-key", ("sk-",), ALNUM, 20, ANY),
    ("litellm-key", ("sk-",), WORD + ":", 20, ANY),
    ("llamacloud-key", ("llx-",), ALNUM, 30, ANY),
    ("factory-key", ("fk-",), WORD, 32, ANY),
    ("luma-key", ("luma-",), UUID, 60, ANY),
    ("cartesia-key", ("sk_car_",), ALNUM, 16, ANY),
    ("browserbase-key", ("bb_live_", "bb_test_"), WORD, 16, ANY),
    ("retell-key", ("key_",), HEX, 28, 40),
    ("friendli-token", ("flp_",), ALNUM, 30, ANY),
    ("anyscale-key", ("esecret_", "aph0_"), ALNUM, 20, ANY),
    ("morph-key", ("sk-morph-",), WORD, 20, ANY),
    ("openai-session", ("sess-",), ALNUM, 40, ANY),
    ("langsmith-key", ("lsv2_", "ls__"), ALNUM + "_", 32, ANY),
    ("groq-key", ("gsk_",), ALNUM, 40, ANY),
    ("replicate-token", ("r8_",), ALNUM, 30, ANY),
    ("perplexity-key", ("pplx-",), ALNUM, 32, ANY),
    ("nvidia-key", ("nvapi-",), WORD, 40, ANY),
    ("pinecone-key", ("pcsk_",), WORD, 40, ANY),
    ("huggingface-token", ("hf_", "api_org_"), ALNUM, 30, ANY),
    ("together-key", ("tgp_v1_",), WORD, 30, ANY),
    ("fireworks-key", ("fw_",), ALNUM, 20, 32),
    ("xai-key", ("xai-",), ALNUM, 40, ANY),
    ("cerebras-key", ("csk-",), ALNUM, 40, ANY),
    ("elevenlabs-key", ("sk_",), HEX, 40, 64),
    ("voyage-key", ("pa-",), WORD, 40, 48),
    ("jina-key", ("jina_",), ALNUM, 40, ANY),
    ("tavily-key", ("tvly-",), WORD, 24, ANY),
    ("firecrawl-key", ("fc-",), HEX, 32, 32),
    ("brave-key", ("BSA",), WORD, 24, 32),
    ("runpod-key", ("rpa_",), ALNUM, 32, ANY),
    ("modal-token", ("ak-", "as-"), ALNUM, 22, 22),
    ("bedrock-key", ("ABSK",), BASE64, 80, ANY),
    ("bedrock-key", ("bedrock-api-key-",), BASE64, 40, ANY),
    ("cursor-key", ("crsr_", "key_"), HEX, 64, ANY),
    ("wandb-key", ("wandb_v1_", "local-"), ALNUM + "_", 40, ANY),
    ("coze-token", ("pat_", "sat_"), ALNUM, 50, ANY),
    ("lakera-key", ("lk-", "lakera_"), ALNUM, 32, ANY),
    ("e2b-key", ("e2b_",), HEX, 32, ANY),
    ("composio-key", ("ak_", "uak_"), WORD, 20, 40),
    ("mem0-key", ("m0-",), ALNUM, 36, ANY),
    ("unstructured-key", ("uns_",), ALNUM, 30, ANY),
    # Clouds and hosting
    ("aws-access-key", ("AKIA", "ASIA", "ABIA", "ACCA"), UPPER, 16, 16),
    ("aws-mws-token", ("amzn.mws.",), UUID, 32, ANY),
    ("aws-oauth-secret", ("amzn1.oa2-cs.v1.",), HEX, 40, ANY),
    ("google-key", ("AIza",), WORD, 30, ANY),
    ("google-key", ("GOCSPX-",), WORD, 20, ANY),
    ("google-key", ("ya29.",), DOTTED, 20, ANY),
    ("google-key", ("AQ.Ab",), WORD, 30, ANY),
    ("google-refresh-token", ("1//0",), WORD, 30, ANY),
    ("google-hmac-key", ("GOOG1E", "GOOG"), UPPER, 20, 58),
    ("digitalocean-token", ("dop_v1_", "doo_v1_", "dor_v1_"), HEX, 40, ANY),
    ("digitalocean-spaces-key", ("DO00", "DO801"), UPPER, 15, 18),
    ("alibaba-key", ("LTAI",), ALNUM, 12, 24),
    ("tencent-key", ("AKID",), ALNUM, 28, 40),
    ("baidu-key", ("bce-v3/ALTAK-", "ALTAK"), ALNUM + "/", 20, ANY),
    ("volcengine-key", ("AKLT",), ALNUM, 32, ANY),
    ("scaleway-key", ("SCW",), UPPER, 17, 17),
    ("scalingo-token", ("tk-us-",), WORD, 40, ANY),
    ("heroku-key", ("HRKU-",), WORD, 30, ANY),
    ("fly-token", ("fo1_",), WORD, 36, ANY),
    ("fly-token", ("fm1a_", "fm1r_", "fm2_"), BASE64 + ",", 40, ANY),
    ("vercel-token", ("vcp_", "vci_", "vca_", "vcr_", "vck_", "vercel_blob_rw_"), WORD, 24, ANY),
    ("netlify-token", ("nfp_", "nfo_", "nfc_", "nfu_", "nfb_"), WORD, 32, ANY),
    ("render-key", ("rnd_",), ALNUM, 24, ANY),
    ("cloudflare-key", ("v1.0-",), UUID, 100, ANY),
    ("cloudflare-token", ("cfut_", "cfat_", "cfk_"), WORD, 32, ANY),
    ("cloudflare-tunnel", ("eyJhIjoi",), BASE64, 80, ANY),
    ("supabase-key", ("sbp_", "sbs_", "sbp_oauth_", "sb_secret_", "sba_"), WORD, 24, ANY),
    ("neon-key", ("napi_",), ALNUM, 40, ANY),
    ("neon-password", ("npg_",), ALNUM, 10, 24),
    ("planetscale-token", ("pscale_tkn_", "pscale_oauth_", "pscale_pw_", "pscale_api_"), DOTTED, 24, ANY),
    ("mongodb-atlas-secret", ("mdb_sa_sk_",), WORD, 24, ANY),
    ("cockroach-key", ("CCDB1_",), ALNUM + "_", 32, ANY),
    ("aiven-password", ("AVNS_",), WORD, 12, ANY),
    ("aiven-token", ("aivenv1_",), BASE64, 30, ANY),
    ("clickhouse-key", ("4b1d",), ALNUM, 38, 38),
    ("elastic-key", ("essu_", "essa_", "ess_"), BASE64, 32, ANY),
    ("databricks-token", ("dapi", "dose", "dkea", "dsapi"), HEX + "-", 32, 36),
    ("confluent-key", ("cflt",), BASE64, 50, ANY),
    ("xata-key", ("xau_",), ALNUM, 24, ANY),
    ("fauna-key", ("fnA", "fnE"), WORD, 34, 48),
    ("materialize-key", ("mzp_",), HEX, 40, ANY),
    ("appwrite-key", ("standard_",), HEX, 100, ANY),
    ("portainer-token", ("ptr_",), BASE64, 36, ANY),
    ("openshift-token", ("sha256~",), WORD, 40, ANY),
    ("swarm-token", ("SWMTKN-1-",), LOWER + "-", 40, ANY),
    ("k3s-token", ("K10",), HEX + ":server", 64, ANY),
    ("tailscale-key", ("tskey-",), WORD, 16, ANY),
    ("ngrok-token", ("ngrok_", "cr_2", "ak_2"), ALNUM, 24, ANY),
    ("terraform-token", ("tfr_", "tfe_"), ALNUM, 40, ANY),
    ("spacelift-token", ("spacelift_",), ALNUM, 30, ANY),
    ("alibaba-sts-key", ("STS.",), ALNUM, 20, ANY),
    ("upcloud-token", ("ucat_",), ALNUM, 24, ANY),
    ("exoscale-key", ("EXO",), HEX, 24, ANY),
    ("tigris-key", ("tid_", "tsec_"), WORD, 20, ANY),
    ("netbird-token", ("nbp_",), ALNUM, 30, ANY),
    # Secrets and identity
    ("vault-token", ("hvs.", "hvb.", "hvr."), WORD, 20, ANY),
    ("doppler-token", ("dp.pt.", "dp.st.", "dp.ct.", "dp.sa.", "dp.scim.", "dp.audit."), DOTTED, 36, ANY),
    ("1password-key", ("A3-",), UPPER + "-", 28, 40),
    ("1password-token", ("ops_eyJ",), BASE64, 60, ANY),
    ("age-key", ("AGE-SECRET-KEY-1",), UPPER, 50, ANY),
    ("infisical-token", ("st.",), ALNUM + ".-", 60, ANY),
    ("stytch-secret", ("secret-live-", "secret-test-"), WORD + "=", 24, ANY),
    ("clerk-key", ("ak_live_", "ak_test_", "sk_org_"), WORD, 20, ANY),
    ("authress-key", ("authress_", "scauth_"), DOTTED + "+/", 60, ANY),
    ("teleport-token", ("tpat_",), ALNUM, 24, ANY),
    ("unkey-key", ("unkey_",), WORD, 20, ANY),
    ("zuplo-key", ("zpka_", "zpat_"), WORD, 30, ANY),
    ("kong-token", ("kpat_", "spat_"), ALNUM, 32, ANY),
    ("bitwarden-token", ("bwdc_", "bws_"), WORD, 30, ANY),
    ("linkedin-secret", ("WPL_AP1.",), DOTTED, 14, ANY),
    ("adobe-secret", ("p8e-", "p8-"), WORD, 30, ANY),
    ("intra42-secret", ("s-s4t2ud-", "s-s4t2af-"), HEX, 64, ANY),
    ("defined-key", ("dnkey-",), WORD + "=", 60, ANY),
    ("ory-token", ("ory_pat_", "ory_at_", "ory_rt_", "ory_ac_", "ory_st_", "ory_wak_", "ory_apikey_"), DOTTED, 20, ANY),
    ("authress-key", ("sc_", "ext_"), DOTTED + "+/", 60, ANY),
    ("permit-key", ("permit_key_",), ALNUM, 30, ANY),
    ("arcjet-key", ("ajkey_",), ALNUM, 20, ANY),
    ("persona-key", ("persona_production_", "persona_sandbox_"), WORD, 24, ANY),
    ("onfido-token", ("api_live.", "api_sandbox.", "api_live_us.", "api_live_ca."), WORD + ".", 24, ANY),
    ("nightfall-key", ("NF-",), ALNUM, 32, 32),
    ("jwt-base64", ("ZXlKaGJHY2lPaU", "ZXlKMGVYQWlPaU", "ZXlKcmFXUWlP"), BASE64, 40, ANY),
    ("keygen-token", ("activ-", "admin-", "prod-", "user-", "env-"), HEX + "v", 66, ANY),
    # Observability and analytics
    ("grafana-token", ("glc_",), BASE64, 32, ANY),
    ("grafana-token", ("glsa_",), ALNUM + "_", 36, ANY),
    ("grafana-key", ("eyJrIjoi",), BASE64, 60, ANY),
    ("newrelic-key", ("NRAK-", "NRJS-", "NRII-", "NRRA-", "NRAA-", "NRIQ-", "NRSP-"), WORD, 19, ANY),
    ("sentry-token", ("sntrys_", "sntryu_", "sntrya_", "sntryi_"), BASE64, 40, ANY),
    ("posthog-key", ("phx_", "phc_", "phs_", "pha_", "phr_"), WORD, 32, ANY),
    ("honeycomb-key", ("hcaik_", "hcalk_", "hcxik_", "hcxlk_", "hcamk_", "hcxmk_", "hcbik_"), ALNUM, 32, ANY),
    ("dynatrace-token", ("dt0c01.", "dt0s01.", "dt0s02.", "dt0s08.", "dt0s16."), UPPER + ".", 60, ANY),
    ("datadog-key", ("ddapi_", "ddapp_", "ddpat_", "ddsat_"), WORD, 30, ANY),
    ("launchdarkly-key", ("sdk-", "api-", "mob-"), UUID, 36, 36),
    ("statsig-key", ("secret-", "console-"), ALNUM, 40, ANY),
    ("flagsmith-key", ("ser.",), ALNUM, 22, 24),
    ("configcat-key", ("configcat-sdk-1/", "configcat-proxy/"), WORD + "/", 30, ANY),
    ("checkly-key", ("cu_",), HEX, 32, 32),
    ("tinybird-token", ("p.eyJ",), DOTTED, 60, ANY),
    ("mapbox-token", ("sk.eyJ", "tk.eyJ", "pk.eyJ"), DOTTED, 50, ANY),
    ("segment-token", ("sgp_",), WORD, 40, ANY),
    ("metabase-key", ("mb_",), BASE64, 40, ANY),
    ("hex-token", ("hxtp_", "hxtw_"), ALNUM, 40, ANY),
    ("appsmith-key", ("pk_appsmith_",), WORD, 20, ANY),
    ("axiom-token", ("xaat-", "xapt-", "xait-"), UUID, 32, ANY),
    ("datadog-client-token", ("pub",), HEX, 32, 32),
    ("coralogix-key", ("cxtp_", "cxup_", "cxth_", "cxuw_"), ALNUM, 20, ANY),
    ("honeybadger-key", ("hbp_", "hbt_"), ALNUM, 30, ANY),
    ("logicmonitor-token", ("lmb_", "lma_"), BASE64, 30, ANY),
    ("firehydrant-token", ("fhb-",), HEX, 32, ANY),
    ("uptimekuma-key", ("uk1_",), WORD, 30, ANY),
    ("pagerduty-key", ("pdus+", "pdeu+"), ALNUM + "_-+", 16, ANY),
    ("lightdash-token", ("ldpat_", "ldsvc_"), HEX, 32, ANY),
    ("census-token", ("secret-token:",), WORD + ":.", 16, ANY),
    ("samsara-token", ("samsara_api_", "samsara_oa_"), ALNUM, 20, ANY),
    # Payments and commerce
    ("stripe-key", ("sk_live_", "sk_test_", "sk_prod_", "rk_live_", "rk_test_", "rk_prod_"), WORD, 10, ANY),
    ("stripe-webhook", ("whsec_",), BASE64, 16, ANY),
    ("square-token", ("EAAA",), WORD, 56, ANY),
    ("square-token", ("sq0atp-", "sq0csp-", "sandbox-sq0csb-", "sq0csb-"), WORD, 20, ANY),
    ("plaid-token", ("access-sandbox-", "access-development-", "access-production-"), UUID, 32, ANY),
    ("razorpay-key", ("rzp_live_", "rzp_test_"), ALNUM, 12, ANY),
    ("paypal-token", ("access_token$production$", "access_token$sandbox$"), ALNUM + "$", 40, ANY),
    ("shippo-token", ("shippo_live_", "shippo_test_"), HEXES, 32, ANY),
    ("easypost-key", ("EZAK", "EZTK"), ALNUM, 50, ANY),
    ("lob-key", ("live_pub_", "test_pub_"), HEX, 28, ANY),
    ("payment-key", ("live_", "test_"), ALNUM, 30, 40),
    ("gocardless-token", ("live_", "sandbox_"), WORD + "=", 40, 40),
    ("duffel-token", ("duffel_test_", "duffel_live_"), WORD + "=", 36, ANY),
    ("flutterwave-key", ("FLWSECK-", "FLWSECK_TEST-", "FLWPUBK_TEST-", "FLWPUBK-"), ALNUM + "-", 12, ANY),
    ("paddle-key", ("pdl_live_", "pdl_sdbx_", "pdl_ntfset_"), ALNUM + "_", 30, ANY),
    ("xendit-key", ("xnd_production_", "xnd_development_"), BASE64, 24, ANY),
    ("midtrans-key", ("Mid-server-", "SB-Mid-server-"), WORD, 18, ANY),
    ("mercadopago-token", ("APP_USR-",), ALNUM + "-", 40, ANY),
    ("klarna-key", ("klarna_live_api_", "klarna_test_api_"), BASE64, 40, ANY),
    ("adyen-key", ("AQE",), BASE64 + "^<>{}|*", 80, ANY),
    ("checkout-key", ("sk_sbox_",), LOWER, 24, ANY),
    ("checkout-key", ("sk_",), UUID, 36, 36),
    ("polar-token", ("polar_oat_", "polar_pat_", "polar_whs_"), ALNUM, 30, ANY),
    ("shopify-token", ("shpat_", "shpca_", "shppa_", "shpss_", "shpua_", "shptka_", "shpit_"), HEXES, 32, ANY),
    ("woocommerce-key", ("ck_", "cs_"), HEX, 40, 40),
    ("freemius-key", ("sk_",), WORD + "=", 24, ANY),
    ("crossmint-key", ("sk_production_", "sk_staging_", "sk_development_"), WORD, 20, ANY),
    ("brex-token", ("bxt_",), WORD, 24, ANY),
    ("ramp-token", ("ramp_tok_", "ramp_sec_", "ramp_business_tok_"), ALNUM, 24, ANY),
    ("mercury-token", ("mercury_production_", "mercury_sandbox_"), WORD, 24, ANY),
    ("rainforest-key", ("apikey_", "sbx_apikey_"), WORD, 32, ANY),
    ("imagekit-key", ("private_",), ALNUM + "+/=", 24, 40),
    ("orb-key", ("orb_live_", "orb_test_"), WORD, 20, ANY),
    ("creem-key", ("creem_",), ALNUM, 16, ANY),
    ("dub-key", ("dub_",), ALNUM, 20, ANY),
    ("alpaca-key", ("PK", "AK"), UPPER, 18, 18),
    # Messages, mail, people
    ("slack-token", ("xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxs-", "xoxo-", "xoxc-", "xoxd-"), WORD + "%", 10, ANY),
    ("slack-token", ("xoxe-", "xoxe.xoxb-", "xoxe.xoxp-", "xapp-", "xwfp-"), WORD, 10, ANY),
    ("sendgrid-key", ("SG.",), WORD + ".", 40, ANY),
    ("mailgun-key", ("key-", "pubkey-"), HEX, 32, 32),
    ("brevo-key", ("xkeysib-", "xsmtpsib-"), ALNUM + "-", 40, ANY),
    ("mailersend-token", ("mlsn.",), ALNUM, 32, ANY),
    ("twitch-token", ("oauth:",), LOWER, 30, 30),
    ("telnyx-key", ("KEY0",), ALNUM + "_", 40, ANY),
    ("pubnub-key", ("sec-c-", "sub-c-", "pub-c-"), BASE64, 36, ANY),
    ("smtp2go-key", ("api-",), HEXES, 32, 32),
    ("ntfy-token", ("tk_",), LOWER, 29, 29),
    ("height-key", ("secret_",), LOWER, 40, ANY),
    ("tally-key", ("tly-",), ALNUM, 24, ANY),
    ("knock-key", ("sk_test_", "sk_live_"), WORD, 24, ANY),
    ("close-key", ("api_",), ALNUM + ".", 40, 50),
    ("builder-key", ("bpk-",), HEX, 32, ANY),
    ("porkbun-key", ("sk1_", "pk1_"), HEX, 40, ANY),
    ("backblaze-key", ("K00",), BASE64, 28, 28),
    ("yandex-api-key", ("dict.1.1.", "pdct.1.1.", "trnsl.1.1."), LOWER + "TZ.", 40, ANY),
    ("resend-key", ("re_",), ALNUM + "_", 24, 40),
    ("mandrill-key", ("md-",), WORD, 22, 22),
    ("twilio-key", ("SK",), HEXES, 32, 32),
    ("hubspot-token", ("pat-na1-", "pat-na2-", "pat-eu1-", "pat-ap1-"), UUID, 32, ANY),
    ("intercom-token", ("dG9rO",), BASE64, 40, ANY),
    ("klaviyo-key", ("pk_",), HEX, 34, 34),
    ("typeform-token", ("tfp_",), DOTTED, 40, ANY),
    ("onesignal-key", ("os_v2_app_", "os_v2_org_"), LOWER, 60, ANY),
    ("courier-key", ("pk_prod_", "dk_prod_", "pk_test_", "dk_test_"), UPPER, 24, ANY),
    ("cal-key", ("cal_live_", "cal_test_"), HEX, 24, ANY),
    ("calendly-token", ("cldly_",), WORD, 24, ANY),
    ("airtable-key", ("key",), ALNUM, 14, 14),
    ("notion-token", ("ntn_",), ALNUM, 40, ANY),
    ("notion-token", ("secret_",), ALNUM, 40, ANY),
    ("linear-key", ("lin_api_", "lin_oauth_", "lin_wh_"), ALNUM, 30, ANY),
    ("figma-token", ("figd_", "figo_", "figu_", "fiapp_"), WORD, 32, ANY),
    ("canva-secret", ("cnvca",), WORD, 40, ANY),
    ("contentful-token", ("CFPAT-",), WORD, 40, ANY),
    ("frameio-token", ("fio-u-",), WORD + "=", 50, ANY),
    ("sanity-token", ("sk",), ALNUM, 80, ANY),
    ("n8n-key", ("n8n_api_",), DOTTED, 24, ANY),
    ("trigger-key", ("tr_dev_", "tr_prod_", "tr_pat_", "tr_stg_"), ALNUM, 16, ANY),
    ("inngest-key", ("signkey-prod-", "signkey-test-", "signkey-branch-"), HEX, 32, ANY),
    ("settlemint-token", ("sm_aat_", "sm_pat_", "sm_sat_"), ALNUM, 16, ANY),
    ("adafruit-key", ("aio_",), ALNUM, 24, ANY),
    ("alchemy-key", ("alcht_", "alch_"), ALNUM, 24, ANY),
    ("beamer-token", ("b_",), WORD + "=", 44, 44),
    ("facebook-token", ("EAAC", "EAAM", "EAAB", "EAAG", "EAAJ", "EAAD", "EAAF", "EAAH", "EAAE"), ALNUM, 80, ANY),
    ("instagram-token", ("IGQV", "IGQW", "IGAA", "THAA"), WORD, 80, ANY),
    ("twitter-token", ("AAAAAAAAAAAAAAAAAAAAA",), ALNUM + "%", 40, ANY),
    ("dropbox-token", ("sl.",), WORD + ".=", 100, ANY),
    ("pinterest-token", ("pina_", "pinr_"), ALNUM, 40, ANY),
    ("vk-token", ("vk1.a.",), WORD, 60, ANY),
    ("yandex-token", ("y0_", "y1_", "y2_", "y3_"), WORD, 48, ANY),
    ("yandex-token", ("t1.",), DOTTED, 86, ANY),
    ("yandex-key", ("AQVN",), WORD, 34, 40),
    ("yandex-key", ("YCA", "YCM", "YCN"), WORD, 22, 40),
    ("riot-key", ("RGAPI-",), UUID, 32, ANY),
    ("discord-token", ("mfa.",), WORD, 80, ANY),
    ("branch-key", ("key_live_", "secret_live_"), ALNUM, 24, ANY),
    ("webflow-token", ("ws-",), HEX, 60, ANY),
    ("exa-key", ("exa_",), ALNUM, 24, ANY),
    ("lemon-key", ("lmn_",), ALNUM, 24, ANY),
)

# Formats whose mark is inside or at the end: (kind, text that must occur, pattern).
SHAPES: tuple[tuple[str, str, str], ...] = (
    ("gitlab-session", "_gitlab_session=", r"(?<![A-Za-z0-9])_gitlab_session=[A-Za-z0-9]{32,}"),
    ("terraform-token", ".atlasv1.", r"(?<![A-Za-z0-9])[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{40,}"),
    ("azure-ad-secret", "Q~", r"(?<![\w~.-])[\w~.]{3}\dQ~[\w~.-]{31,34}(?![\w~-])"),
    ("azure-key", "JQQJ99", r"(?<![A-Za-z0-9])[A-Za-z0-9]{46,60}JQQJ99[A-Za-z0-9]{20,40}(?![A-Za-z0-9])"),
    ("azure-devops-token", "AZDO", r"(?<![A-Za-z0-9])[A-Za-z0-9]{60,80}AZDO[A-Za-z0-9]{4}(?![A-Za-z0-9])"),
    *(
        (
            "azure-key",
            mark,
            r"(?<![A-Za-z0-9+/])[A-Za-z0-9+/_-]{24,80}" + mark.replace("+", r"\+") + r"[A-Za-z0-9+/=_-]{6,12}",
        )
        for mark in ("+ASt", "AzFu", "AzSe", "ACDb", "AzCa", "AIoT", "+ACR", "+ASb", "+AEh", "+ARm", "+ABa", "+AMC")
    ),
    ("azure-sas", "sig=", r"(?i)[?&;]sig=(?P<secret>[A-Za-z0-9%/+_-]{30,}={0,2})"),
    ("aws-presigned-url", "X-Amz-", r"(?i)X-Amz-(?:Signature|Security-Token)=(?P<secret>[A-Za-z0-9%/+=_-]{32,})"),
    ("google-presigned-url", "X-Goog-Signature", r"X-Goog-Signature=(?P<secret>[0-9a-fA-F]{32,})"),
    ("presigned-url", "ignature=", r"[?&]Signature=(?P<secret>[A-Za-z0-9%/+=_~-]{24,})"),
    ("airtable-token", "pat", r"(?<![A-Za-z0-9])pat[A-Za-z0-9]{14}\.[0-9a-f]{64}"),
    ("newrelic-license", "NRAL", r"(?<![A-Za-z0-9])(?:[0-9a-f]{36}|[a-z]{2}\d\dx{2}[0-9a-f]{30})NRAL(?![A-Za-z0-9])"),
    ("maxmind-key", "_mmk", r"(?<![A-Za-z0-9])[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk"),
    ("mailchimp-key", "-us", r"(?<![0-9a-f])[0-9a-f]{32}-us\d{1,2}(?!\d)"),
    ("mailgun-key", "-", r"(?<![0-9a-h-])[0-9a-h]{32}-[0-9a-h]{8}-[0-9a-h]{8}(?![0-9a-h-])"),
    ("asana-token", "/", r"(?<![\w/.])[12]/\d{10,20}(?:/\d{10,20})?:[0-9a-f]{32}(?![0-9a-f])"),
    ("clickup-token", "pk_", r"(?<![A-Za-z0-9])pk_\d{5,12}_[A-Z0-9]{32}"),
    ("rapidapi-key", "jsn", r"(?<![A-Za-z0-9])[a-z0-9]{10}msh[a-z0-9]{15}p1[a-z0-9]{6}jsn[a-z0-9]{12}"),
    (
        "ngrok-token",
        "_",
        r"(?<![A-Za-z0-9])[12](?=[A-Za-z]{0,25}\d)(?=[A-Z0-9]{0,25}[a-z])[A-Za-z0-9]{26}_[A-Za-z0-9]{21,22}(?![A-Za-z0-9])",
    ),
    ("okta-token", "00", r"(?<![\w-])00(?=[\w-]{0,38}[a-z])(?=[\w-]{0,38}[A-Z])[\w-]{40}(?![\w-])"),
    ("firebase-key", ":APA91", r"(?<![\w-])[\w-]{11,}:APA91[\w-]{100,}"),
    ("firebase-key", "AAAA", r"(?<![\w-])AAAA[A-Za-z0-9_-]{7}:[A-Za-z0-9_-]{120,}"),
    ("salesforce-token", "00D", r"(?<![A-Za-z0-9])00D[A-Za-z0-9]{12,15}![A-Za-z0-9._]{60,}"),
    ("ghost-key", ":", r"(?<![0-9a-f])[0-9a-f]{24}:[0-9a-f]{64}(?![0-9a-f])"),
    ("ably-key", ":", r"(?<![\w.-])[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{6}:[A-Za-z0-9_-]{43}(?![\w-])"),
    ("webex-token", "_P", r"(?<![A-Za-z0-9])[A-Za-z0-9]{64}_P[A-Z0-9]{3}_[0-9a-f-]{36}"),
    ("facebook-token", "|", r"(?<![A-Za-z0-9])\d{15,16}(?:\||%7C)[\w-]{27,40}(?![\w-])"),
    ("twitter-token", "-", r"(?<![A-Za-z0-9-])\d{15,20}-(?=[A-Za-z]{0,39}\d)[A-Za-z0-9]{40}(?![A-Za-z0-9])"),
    ("zhipu-key", ".", r"(?<![A-Za-z0-9.])[0-9a-f]{32}\.[A-Za-z0-9]{16}(?![A-Za-z0-9.])"),
    ("dropbox-token", "AAAAAAAAAA", r"(?<![A-Za-z0-9])[A-Za-z0-9_-]{11}AAAAAAAAAA[A-Za-z0-9_=-]{43}"),
    ("rancher-token", ":", r"(?<![A-Za-z0-9])(?:token|kubeconfig)-[a-z0-9-]{5,40}:[a-z0-9]{54}"),
    ("unleash-token", ":", r"(?<![\w*-])[\w*-]{1,40}:[\w-]{2,30}\.[0-9a-f]{56,64}(?![0-9a-f])"),
    ("telegram-token", ":AA", r"(?<![A-Za-z0-9])(?:bot)?(?P<secret>\d{8,10}:AA[A-Za-z0-9_-]{33})(?![A-Za-z0-9_-])"),
    (
        "slack-webhook",
        "hooks.slack.com/",
        r"hooks\.slack\.com/(?:services|workflows|triggers)/(?P<secret>[A-Za-z0-9+/]{20,})",
    ),
    (
        "discord-webhook",
        "/webhooks/",
        r"discord(?:app)?\.com/api/(?:v\d{1,2}/)?webhooks/\d{15,22}/(?P<secret>[A-Za-z0-9_-]{40,100})",
    ),
    ("teams-webhook", "webhook.office.com", r"webhook\.office\.com/webhookb2/(?P<secret>[A-Za-z0-9@/-]{40,})"),
    ("teams-webhook", "outlook.office.com/webhook", r"outlook\.office\.com/webhook/(?P<secret>[A-Za-z0-9@/-]{40,})"),
    ("zapier-webhook", "hooks.zapier.com/", r"hooks\.zapier\.com/hooks/catch/(?P<secret>\d{4,}/[A-Za-z0-9]{6,})"),
    (
        "ifttt-webhook",
        "maker.ifttt.com",
        r"maker\.ifttt\.com/trigger/[^/\s]{1,60}(?:/json)?/with/key/(?P<secret>[\w-]{20,})",
    ),
    ("make-webhook", "hook.", r"hook\.(?:[a-z]{2}\d\.)?(?:make|integromat)\.com/(?P<secret>[a-z0-9]{20,})"),
    (
        "googlechat-webhook",
        "chat.googleapis.com",
        r"chat\.googleapis\.com/v1/spaces/[\w-]+/messages\?(?P<secret>key=[\w-]{20,}\S*)",
    ),
    ("dingtalk-webhook", "access_token=", r"oapi\.dingtalk\.com/robot/send\?access_token=(?P<secret>[0-9a-f]{32,})"),
    ("feishu-webhook", "/bot/v2/hook/", r"/open-apis/bot/v2/hook/(?P<secret>[0-9a-f-]{30,})"),
    ("wecom-webhook", "/cgi-bin/webhook/", r"/cgi-bin/webhook/send\?key=(?P<secret>[0-9a-f-]{30,})"),
    ("mattermost-webhook", "/hooks/", r"mattermost[\w.-]*(?::\d+)?/hooks/(?P<secret>[a-z0-9]{26})(?![a-z0-9])"),
    ("sidekiq-login", "contribsys", r"(?i)contribsys\S{0,20}[=:\s]{1,3}(?P<secret>[0-9a-f]{8}:[0-9a-f]{8})"),
    (
        "putty-key",
        "PuTTY-User-Key-File",
        r"PuTTY-User-Key-File-\d:[\s\S]{0,3000}?Private-Lines:(?P<secret>(?:\s{1,2}\S+)+)",
    ),
    ("fal-key", ":", r"(?<![\w-])[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}:[0-9a-f]{32}(?![0-9a-f])"),
    ("deepl-key", ":fx", r"(?<![\w-])[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}:fx(?![A-Za-z0-9])"),
    (
        "bitwarden-token",
        ".",
        r"(?<![\w.-])0\.[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\.[A-Za-z0-9]{20,60}:[A-Za-z0-9+/]{20,}={0,2}",
    ),
    ("convex-key", "|", r"(?<![\w-])(?:prod|dev|preview|project):[\w:-]{2,80}\|(?P<secret>[A-Za-z0-9+/=]{24,})"),
    ("mapbox-token", "k.", r"(?<![\w.-])[ps]k\.[A-Za-z0-9]{50,}\.[\w-]{20,}(?![\w-])"),
    ("infura-key", "infura.io/", r"infura\.io/(?:ws/)?v3/(?P<secret>[0-9a-f]{32})(?![0-9a-f])"),
    ("alchemy-key", "alchemy", r"alchemy(?:api)?\.(?:com|io)/(?:nft/)?v\d/(?P<secret>[\w-]{24,})"),
    ("quicknode-key", "quiknode.pro/", r"quiknode\.pro/(?P<secret>[0-9a-f]{32,})"),
    ("airtable-webhook", "genericWebhook/", r"genericWebhook/(?P<secret>app\w{14}/wfl\w{14}/wtr\w{14})"),
    ("openweather-key", "appid=", r"(?i)[?&]appid=(?P<secret>[0-9a-f]{32})(?![0-9a-f])"),
    (
        "pgpass-line",
        ":5432:",
        r"(?m)(?<![\w.*:-])[\w.*-]{1,100}:5432:[\w.*-]{1,64}:[\w.*@-]{1,64}:(?P<secret>[^\s:$\"'`]{6,100})",
    ),
    (
        "pgpass-line",
        ":*:",
        r"(?m)(?<![\w.*:-])[\w.*-]{1,100}:(?:\d{1,5}|\*):(?:\*|\w{1,64}):[\w.*@-]{1,64}:(?P<secret>[^\s:*$\"'`]{6,100})",
    ),
    ("jenkins-token", "11", r"(?<![A-Za-z0-9])11[0-9a-f]{32}(?![A-Za-z0-9])"),
)

# Prefixes that are also the beginning of ordinary names: what follows must have digits, small and capital letters, and
# nothing of a word may stand before.
_AMBIGUOUS = frozenset(
    (
        *("cio", "key", "ak-", "as-", "fw_", "re_", "sk", "PK", "AK", "SK", "BSA", "pa-", "md-", "b_", "ak_", "uak_"),
        *("live_", "test_", "sandbox_", "sk_", "local-", "mb_", "ess_", "YCA", "YCM", "YCN", "secret-", "console-"),
        *("AKID", "GOOG", "SCW", "pat_", "sat_", "lk-", "api-", "cli-", "K10", "st.", "pat.", "sat.", "ws-", "retool_"),
        *("fnA", "fnE", "AQE", "secret_", "packagist_", "perm-", "perm:", "fk-", "ls-", "sc_", "ext_", "STS.", "K00"),
        *("tk_", "oauth:", "api_", "private_", "apikey_", "rca_", "dub_", "tid_", "hbp_", "hbt_", "sess-"),
    )
)
_UPPER_ONLY = frozenset(("PK", "AK", "SCW", "GOOG"))
_LOWER_ONLY = frozenset(
    (
        *("api-", "cli-", "K10", "ws-", "md-", "SK", "live_", "test_", "sk_", "packagist_", "st.", "tk_", "oauth:"),
        *("secret_", "apikey_", "sess-"),
    )
)
# Kinds whose characters are those of file names: their tokens have digits, small and capital letters.
_STRICT = frozenset(("litellm-key",))
_MASKS = (
    *("xxxx", "****", "....", "____", "your", "example", "placeholder", "changeme", "replace", "redacted", "dummy"),
    *("notareal", "not-a-", "not_a_", "fake", _LOWER),
)
# What has the shape of an unknown vendor's token, but is a public id: of Stripe, OpenAI, Vercel; or a digest.
_PUBLIC = frozenset(
    (
        *("sha1", "sha224", "sha256", "sha384", "sha512", "md5", "nonce", "cs", "pi", "seti", "pk", "chatcmpl", "cmpl"),
        *("file", "msg", "resp", "call", "toolu", "req", "thread", "run", "asst", "dpl", "prj", "user", "org", "evt"),
        *("chunk", "index", "main", "vendor", "app", "assets", "build", "cache", "hash", "id", "uid", "ref", "etag"),
    )
)
_BEFORE_DIGESTS = ("/", ".", "+", "%", "#", "sha1=", "sha224=", "sha256=", "sha384=", "sha512=", "sha256:", "h1:")
_SHORTEST = 14  # characters of a token with its prefix
_SHORTEST_UNKNOWN = 30  # random characters after the prefix of a vendor who is not in the table
_BETWEEN_WORDS = "\"'`<>()[]{}"
_LONG_RUN, _LONG_NUMBER = 21, 15
_COMMON_MARKS = frozenset(("-", ":", ".", "_", "|", "/", "00", "11", "pat", "-us", "_P", "pk_", "jsn", "k."))
_compiled: dict[str, re.Pattern[str]] = {}
_by_start: dict[str, list[tuple[str, str, str, int, int]]] = {}


def find_tokens(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield start, end and kind of each vendor token in the text; the same token may come under two kinds."""
    by_start = _index()
    end = 0
    for at, run in _runs(text):
        if at < end:
            continue
        for kind, prefix, characters, fewest, most in by_start.get(text[at : at + 2], ()):
            if text.startswith(prefix, at):
                strict = kind in _STRICT
                stop, is_token = _measure(text, at, prefix, characters, fewest, most, strict=strict)
                end = max(end, stop)
                if is_token:
                    yield at, stop, kind
                    break
        else:
            if len(run) >= _SHORTEST_UNKNOWN and text[at - 1 : at] in ("_", "-"):
                start, stop = _start_of_prefix(text, at), at + len(run)
                if start < at and text[stop : stop + 1] not in ("-", "_") and _is_mixture(run) and not _is_mask(run):
                    yield start, stop, "token"
    yield from _find_shapes(text)


def _start_of_prefix(text: str, at: int) -> int:
    """Return where a vendor's prefix that ends at `at` starts: `acme_live_`; `at` when there is none."""
    before = text[max(0, at - 32) : at]
    prefix = before[len(before.rstrip(WORD)) :]
    first, *_ = words = prefix.replace("-", "_").split("_")[:-1]
    outside = text[max(0, at - len(prefix) - 8) : at - len(prefix)]
    is_prefix = len(words) <= 3 and prefix.islower() and first[:2].isalpha() and len(first) > 1
    is_public = first in _PUBLIC or max(map(len, words)) > 10 or outside.lower().endswith(_BEFORE_DIGESTS)
    return at - len(prefix) if is_prefix and not is_public and len(prefix) < 24 else at


def _runs(text: str) -> Iterator[tuple[int, str]]:
    """Yield place and text of each run of letters and digits, in words that are long enough for a token."""
    if len(text) < _SHORTEST:
        return
    for mark in _BETWEEN_WORDS:
        text = text.replace(mark, " ")
    at = 0
    for word in text.split():
        if len(word) >= _SHORTEST:
            at = text.index(word, at)
            for run in word.translate(_ONLY_ALNUM).split():
                at = text.index(run, at)
                yield at, run
                at += len(run)


class _OnlyAlnum(dict[int, str]):
    """A table for `str.translate` that replaces every character that it does not have by a blank."""

    def __missing__(self, code: int) -> str:
        return " "


_ONLY_ALNUM = _OnlyAlnum({ord(char): char for char in ALNUM})
_ONLY_WORD = _OnlyAlnum({ord(char): char for char in WORD})


def _has_long_run(text: str) -> bool:
    """Return whether the text has a run of characters that only generators make, UUIDs excepted."""
    return any(
        len(run) >= _LONG_RUN or (len(run) >= _LONG_NUMBER and _has_long_number(run)) for _, run in _runs(text)
    ) or any(map(_is_generated_word, _words(text)))


def _has_long_number(run: str) -> bool:
    return any(run[at : at + _LONG_NUMBER].isdigit() for at in range(len(run) - _LONG_NUMBER + 1))


def _words(text: str) -> Iterator[str]:
    """Yield the long runs of letters, digits, dashes and underscores, and each `uuid:...`."""
    for word in text.split():
        if len(word) >= _LONG_RUN:
            for part in word.translate(_ONLY_WORD).split():
                if len(part) >= _LONG_RUN:
                    yield part


def _is_generated_word(word: str) -> bool:
    """Return whether a word with dashes or underscores looks random; a UUID only when a colon follows in its kinds."""
    return word.lower() != word != word.upper() and any(map(word.count, _DIGITS)) and not _is_name(word)


def _find_shapes(text: str) -> Iterator[tuple[int, int, str]]:
    has_long_run = None
    for kind, mark, pattern in SHAPES:
        if mark not in text:
            continue
        if mark in _COMMON_MARKS:
            # A colon or a dash is in every text: look first for a run of characters that only generators make.
            if has_long_run is None:
                has_long_run = _has_long_run(text)
            if not has_long_run:
                continue
        for match in _compile(pattern).finditer(text):
            start, end = match.span("secret" if match.re.groups else 0)
            if not _is_mask(text[start:end]):
                yield start, end, kind


def _index() -> dict[str, list[tuple[str, str, str, int, int]]]:
    """Return the formats by the first two characters of their prefix, longest prefix first."""
    if not _by_start:
        rows = [(row[0], prefix, *row[2:]) for row in FORMATS for prefix in row[1]]
        for row in sorted(rows, key=lambda row: -len(row[1])):
            _by_start.setdefault(row[1][:2], []).append(row)
    return _by_start


def _compile(pattern: str) -> re.Pattern[str]:
    import re

    return _compiled.get(pattern) or _compiled.setdefault(pattern, re.compile(pattern))


def _measure(
    text: str, at: int, prefix: str, characters: str, fewest: int, most: int, *, strict: bool
) -> tuple[int, bool]:
    """Return where to look on, and whether a token of this format stands from `at` to there."""
    before = text[at - 1 : at]
    ambiguous = strict or prefix in _AMBIGUOUS
    if before.isalnum() or (ambiguous and before in ("_", "-", ".", "/")):
        return at, False
    start = at + len(prefix)
    rest = text[start : start + most + 1]
    body = rest[: len(rest) - len(rest.lstrip(characters))]
    # A long run is not measured again from each place inside it: that would take quadratic time.
    skip = start + len(body) if len(body) > _LONG_BODY else at
    body = body.rstrip(".-:") if most == ANY else body
    end = start + len(body)
    if not fewest <= len(body) <= most or (most != ANY and text[end : end + 1].isalnum()):
        return skip, False
    if _is_mask(body) or (ambiguous and not _is_generated(body, prefix)) or (strict and not _is_mixture(body)):
        return skip, False
    return end, True


def _is_generated(body: str, prefix: str) -> bool:
    """Return whether the text has the mixture of characters that a random generator makes, and no name has."""
    if body.isdigit() or _is_name(body):
        return False
    if not any(map(body.count, _DIGITS)):
        return _has_scattered_capitals(body)
    if prefix in _UPPER_ONLY:
        return body.upper() == body
    return prefix in _LOWER_ONLY or (body != body.lower() and body != body.upper())


def _is_mixture(body: str) -> bool:
    """Return whether digits, small and capital letters are mixed, as in no word and no name."""
    digits = sum(map(body.count, _DIGITS))
    if digits == 0 or body in (body.lower(), body.upper()):
        return False
    changes = sum(_sort(before) != _sort(now) for before, now in pairwise(body))
    return changes * 4 > len(body) and not _is_name(body)


def _sort(char: str) -> int:
    return 0 if char.isdigit() else 1 if char.islower() else 2


def _has_scattered_capitals(body: str) -> bool:
    """Return whether small and capital letters are mixed as in no word: fewer than half of them are in Camel case."""
    letters = "".join(char for char in body if char.isalpha())
    if len(letters) < 14 or len(letters) < len(body) - 6 or letters in (letters.lower(), letters.upper()):
        return False
    small = "".join(char if char.islower() else " " for char in letters).split()
    return sum(len(run) + 1 for run in small if len(run) > 2) * 5 < len(letters) * 3


def _is_name(body: str) -> bool:
    """Return whether it is words and small numbers, joined: `fake_key_for_ci`."""
    parts = body.replace("_", "-").replace(".", "-").split("-")
    return len(parts) > 1 and all(
        not part or part.isdigit() or (part.rstrip(_DIGITS).isalpha() and part[1:] == part[1:].lower())
        for part in parts
    )


def _is_mask(body: str) -> bool:
    """Return whether a person wrote it in place of a token: `xxxx`, `your-token-here`."""
    lowered = body.lower()
    # Long random text has any four letters somewhere: only as a word in one case do they mean something there.
    written = lowered if len(body) <= _LONG_BODY else body
    if len(set(lowered)) < 5 or any(mask in written for mask in _MASKS if mask != "example" or not body.isupper()):
        return True
    return (
        body.count("-") + body.count("_") > 1 and lowered.replace("-", "").replace("_", "").isalpha() and _is_name(body)
    )
