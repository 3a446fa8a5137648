from console.driver import Console


def test_the_profile_shows_the_user_and_hides_the_token_by_default(tab: Console) -> None:
    tab.enter("#/perfil")
    tab.page.get_by_text("analista@example.com").wait_for()
    assert tab.token not in tab.page.content()
    tab.page.locator(".token").get_by_role("button", name="Mostrar").click()
    assert tab.page.locator(".token code").inner_text() == tab.token
    tab.page.locator(".token").get_by_role("button", name="Ocultar").click()
    assert tab.token not in tab.page.content()
    tab.page.locator(".token").get_by_role("button", name="Copiar").click()
    tab.page.wait_for_timeout(100)
    assert tab.page.evaluate("navigator.clipboard.readText()") == tab.token
