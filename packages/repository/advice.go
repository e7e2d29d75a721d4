package repository

import "cmp"

// Advice is what users can do about errors, for messages. An empty text is that of clusterctl.
type Advice struct {
	// Unreachable is for repositories that do not respond, Credentials for servers that demand them, Series for metadata without
	// the series of the version.
	Unreachable, Credentials, Series string
	// Token is where the token for GitHub is.
	Token string
}

func (a Advice) orDefault() Advice {
	return Advice{
		Unreachable: cmp.Or(a.Unreachable, "check the connection, or set a reachable url for the provider in the configuration file (--config)"),
		Credentials: cmp.Or(a.Credentials,
			"the server requires credentials, which clusterctl does not have: download the files into a local repository instead"),
		Series: cmp.Or(a.Series, "put a corrected file into the overrides folder"),
		Token:  cmp.Or(a.Token, "GITHUB_TOKEN"),
	}
}
