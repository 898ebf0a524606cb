package schema

// An ID names a requirement: dotted segments in kebab case, such as tools.call.unknown-tool. Package ids has a
// constant for each id of the catalogues. Go that needs an id uses the constant, so that a misspelt id does not
// compile. The type is an alias, since results and configurations hold ids, and patterns of ids, as text.
type ID = string
