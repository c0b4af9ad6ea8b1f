package memdynamo

// view is what a Query or a Scan reads: a table, or one of its indexes.
type view struct {
	schema
	*store
	t  *table
	ix *index // nil for the table itself
}

func (t *table) view(index *string) (view, error) {
	if index == nil {
		return view{schema: t.schema, store: &t.store, t: t}, nil
	}
	for _, ix := range t.indexes {
		if ix.name == *index {
			return view{schema: ix.schema, store: &ix.store, t: t, ix: ix}, nil
		}
	}
	return view{}, validation("The table does not have the specified index: %s", *index)
}

// keys is the attributes that say where in the view an item is: its own keys and, of an
// index, those of the table.
func (v *view) keys() []keyAttr {
	var out []keyAttr
	for _, a := range []keyAttr{v.hash, v.rng, v.t.hash, v.t.rng} {
		known := a.name == ""
		for _, o := range out {
			known = known || o.name == a.name
		}
		if !known {
			out = append(out, a)
		}
	}
	return out
}

// keyAttrs is where an item is, as LastEvaluatedKey has it.
func (v *view) keyAttrs(it *item) []attr {
	var out []attr
	for _, a := range v.keys() {
		out = append(out, attr{a.name, it.get(a.name)})
	}
	sortAttrs(out)
	return out
}

// startKey is the place that ExclusiveStartKey names, where no item need be.
func (v *view) startKey(attrs []attr) (hash string, at spot, err error) {
	wrong := func(err error) (string, spot, error) {
		return "", spot{}, validation("The provided starting key is invalid: %s", messageOf(err))
	}
	keys := v.keys()
	if len(attrs) != len(keys) {
		return wrong(validation(keyMismatch))
	}
	for _, a := range keys {
		if got := lookup(attrs, a.name); got == nil || got.kind() != a.kind {
			return wrong(validation(keyMismatch))
		}
	}
	k, bad := v.t.encodeKey(lookup(attrs, v.t.hash.name), lookup(attrs, v.t.rng.name))
	if bad != nil {
		return wrong(bad)
	}
	if v.ix == nil {
		return k.hash, spot{rng: k.rng}, nil
	}
	if hash, err = encodeKeyValue(lookup(attrs, v.hash.name), v.hash.name); err != nil {
		return wrong(err)
	}
	at.of = k
	if v.rng.name != "" {
		if at.rng, err = encodeKeyValue(lookup(attrs, v.rng.name), v.rng.name); err != nil {
			return wrong(err)
		}
	}
	return hash, at, nil
}
