// Package repository reads what providers publish: versions, metadata, components, templates.
//
// A Store opens a Client per provider; the provider's URL decides on the kind of Repository (GitHub releases, GitLab
// packages, a local folder). Client handles what all kinds share: the overrides folder, the meaning of "latest",
// metadata.
package repository
