"""The editor of automations: the picture and forms of a draft (its working copy), and trials."""
