"""What Feldera's clients send to `/v0/pipelines/{p}/ingress/{t}`, as records of an input. Pure."""
