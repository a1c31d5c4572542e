package storetest

func adoptClauses() []clause { return nil }
