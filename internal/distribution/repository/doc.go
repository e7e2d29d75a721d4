// Package repository reads what providers publish: versions, metadata, components, templates.
//
// A Store opens a Client per provider; the provider's URL decides which kind of Repository is behind it (GitHub releases,
// GitLab packages, a local folder). What is common to all kinds lives in Client: the overrides folder, the meaning of
// "latest", metadata. What the files contain is the matter of other packages.
package repository
