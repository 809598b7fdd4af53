"""Texts and tables that runs read: sent by visitors, of a hub or of a folder."""
